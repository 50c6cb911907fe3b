-- What of a list changed while it is walked: the first changed first.
CREATE INDEX kernel_objectives_by_recency ON kernel_objectives (scope, recency, id);
