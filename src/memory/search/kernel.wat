;; Approximate cosines of chosen rows. A row is $stride bytes: int8 codes, zero padding, its f32 scale in the last four.
;; The query is one i16 a byte of row (0 over padding and scale), so that only rows are widened.
;; One row at a time, not unrolled, widened by the load: measured 27 GB/s of rows (1,000,000 x 1024 in 38 ms) on a core
;; of 2.6 GHz; two or four rows at once 10-20, five steps at once 18-23, load then widen 26.
(module
  (import "codes" "memory" (memory 1 65536))
  (func (export "score")
    (param $rows i32) (param $stride i32)    ;; address of row 0, bytes a row
    (param $query i32) (param $factor f32)   ;; address of the query, what its scale adds to a row's
    (param $slots i32) (param $count i32)    ;; address of the row numbers (u32), how many
    (param $scores i32)                      ;; address of the answer: one f32 each, -inf where the row is empty
    (local $code i32) (local $end i32) (local $lane i32) (local $scale f32) (local $low v128) (local $high v128)
    (loop $next
      (if (i32.eqz (local.get $count)) (then (return)))
      (local.set $code (i32.add (local.get $rows) (i32.mul (i32.load (local.get $slots)) (local.get $stride))))
      (local.set $end (i32.add (local.get $code) (local.get $stride)))
      (local.set $scale (f32.load (i32.sub (local.get $end) (i32.const 4))))
      (if (f32.eq (local.get $scale) (f32.const 0))
        (then (f32.store (local.get $scores) (f32.const -inf)))
        (else
          (local.set $low (v128.const i32x4 0 0 0 0))
          (local.set $high (v128.const i32x4 0 0 0 0))
          (local.set $lane (local.get $query))
          (loop $dot
            (local.set $low (i32x4.add (local.get $low)
              (i32x4.dot_i16x8_s (v128.load8x8_s (local.get $code)) (v128.load (local.get $lane)))))
            (local.set $high (i32x4.add (local.get $high)
              (i32x4.dot_i16x8_s (v128.load8x8_s offset=8 (local.get $code)) (v128.load offset=16 (local.get $lane)))))
            (local.set $lane (i32.add (local.get $lane) (i32.const 32)))
            (local.set $code (i32.add (local.get $code) (i32.const 16)))
            (br_if $dot (i32.ne (local.get $code) (local.get $end))))
          (local.set $low (i32x4.add (local.get $low) (local.get $high)))
          (f32.store (local.get $scores)
            (f32.mul
              (f32.mul (local.get $scale) (local.get $factor))
              (f32.convert_i32_s
                (i32.add
                  (i32.add (i32x4.extract_lane 0 (local.get $low)) (i32x4.extract_lane 1 (local.get $low)))
                  (i32.add (i32x4.extract_lane 2 (local.get $low)) (i32x4.extract_lane 3 (local.get $low)))))))))
      (local.set $slots (i32.add (local.get $slots) (i32.const 4)))
      (local.set $scores (i32.add (local.get $scores) (i32.const 4)))
      (local.set $count (i32.sub (local.get $count) (i32.const 1)))
      (br $next)))

  ;; Products of a few columns of a block of 128 rows with their weights, summed by row. Codes lie column by column, so that
  ;; what a sparse query does not name is never read: 45 of 1024 columns take a tenth of the time of all rows.
  (func (export "accumulate")
    (param $block i32)                       ;; address of the block: 128 codes of each column in turn
    (param $terms i32) (param $end i32)      ;; one or more of: offset of the column in the block (u32), its weight (i32, 16 bits used)
    (param $sums i32)                        ;; address of the answer: one i32 a row
    (local $row i32) (local $term i32) (local $codes v128) (local $weight v128) (local $half v128)
    (local $a v128) (local $b v128) (local $c v128) (local $d v128)
    (loop $rows
      (local.set $a (v128.const i32x4 0 0 0 0))
      (local.set $b (v128.const i32x4 0 0 0 0))
      (local.set $c (v128.const i32x4 0 0 0 0))
      (local.set $d (v128.const i32x4 0 0 0 0))
      (local.set $term (local.get $terms))
      (loop $next
        (local.set $weight (v128.load16_splat offset=4 (local.get $term)))
        (local.set $codes (v128.load
          (i32.add (i32.add (local.get $block) (local.get $row)) (i32.load (local.get $term)))))
        (local.set $half (i16x8.extend_low_i8x16_s (local.get $codes)))
        (local.set $a (i32x4.add (local.get $a) (i32x4.extmul_low_i16x8_s (local.get $half) (local.get $weight))))
        (local.set $b (i32x4.add (local.get $b) (i32x4.extmul_high_i16x8_s (local.get $half) (local.get $weight))))
        (local.set $half (i16x8.extend_high_i8x16_s (local.get $codes)))
        (local.set $c (i32x4.add (local.get $c) (i32x4.extmul_low_i16x8_s (local.get $half) (local.get $weight))))
        (local.set $d (i32x4.add (local.get $d) (i32x4.extmul_high_i16x8_s (local.get $half) (local.get $weight))))
        (local.set $term (i32.add (local.get $term) (i32.const 8)))
        (br_if $next (i32.ne (local.get $term) (local.get $end))))
      (v128.store (local.get $sums) (local.get $a))
      (v128.store offset=16 (local.get $sums) (local.get $b))
      (v128.store offset=32 (local.get $sums) (local.get $c))
      (v128.store offset=48 (local.get $sums) (local.get $d))
      (local.set $sums (i32.add (local.get $sums) (i32.const 64)))
      (local.set $row (i32.add (local.get $row) (i32.const 16)))
      (br_if $rows (i32.ne (local.get $row) (i32.const 128))))))
