-- From here on vectors may be packed (src/memory/store/vector/bytes.ts), which earlier programs cannot read. Those that are
-- there stay as they are: this changes no row, and stands for the version alone.
UPDATE cell_vector SET vector = vector WHERE cell_no < 0;
