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

  ;; Approximate cosines of 128 rows, of which only the columns that a sparse query names are read. Two columns at once: their
  ;; codes side by side, so that one instruction multiplies both and adds the products up. Half of it is waiting for memory.
  (func (export "scan")
    (param $codes i32)                       ;; address of the rows' codes, were they those of the column at offset 0
    (param $scales i32)                      ;; address of the rows' scales (f32), and behind them their answers (f32)
    (param $terms i32) (param $end i32)      ;; one or more of: offsets of two columns (u32), their weights (i16)
    (param $factor f32)                      ;; what the query's scale adds to a row's
    (param $floor f32) (param $found i32)    ;; address for the rows whose answer is above the floor, one byte each
    (result i32)                             ;; how many these are
    (local $row i32) (local $last i32) (local $term i32) (local $count i32) (local $lane i32) (local $bits i32)
    (local $first v128) (local $second v128) (local $pairs v128) (local $weights v128)
    (local $a v128) (local $b v128) (local $c v128) (local $d v128)
    (loop $rows
      (local.set $a (v128.const i32x4 0 0 0 0))
      (local.set $b (v128.const i32x4 0 0 0 0))
      (local.set $c (v128.const i32x4 0 0 0 0))
      (local.set $d (v128.const i32x4 0 0 0 0))
      (local.set $term (local.get $terms))
      (loop $next
        (local.set $last (i32.add (local.get $codes) (local.get $row)))
        (local.set $first (v128.load (i32.add (local.get $last) (i32.load (local.get $term)))))
        (local.set $second (v128.load (i32.add (local.get $last) (i32.load offset=4 (local.get $term)))))
        (local.set $weights (v128.load32_splat offset=8 (local.get $term)))
        (local.set $pairs (i8x16.shuffle 0 16 1 17 2 18 3 19 4 20 5 21 6 22 7 23 (local.get $first) (local.get $second)))
        (local.set $a (i32x4.add (local.get $a)
          (i32x4.dot_i16x8_s (i16x8.extend_low_i8x16_s (local.get $pairs)) (local.get $weights))))
        (local.set $b (i32x4.add (local.get $b)
          (i32x4.dot_i16x8_s (i16x8.extend_high_i8x16_s (local.get $pairs)) (local.get $weights))))
        (local.set $pairs (i8x16.shuffle 8 24 9 25 10 26 11 27 12 28 13 29 14 30 15 31 (local.get $first) (local.get $second)))
        (local.set $c (i32x4.add (local.get $c)
          (i32x4.dot_i16x8_s (i16x8.extend_low_i8x16_s (local.get $pairs)) (local.get $weights))))
        (local.set $d (i32x4.add (local.get $d)
          (i32x4.dot_i16x8_s (i16x8.extend_high_i8x16_s (local.get $pairs)) (local.get $weights))))
        (local.set $term (i32.add (local.get $term) (i32.const 12)))
        (br_if $next (i32.ne (local.get $term) (local.get $end))))
      ;; Sixteen sums become answers, four at a time.
      (local.set $lane (i32.add (local.get $scales) (i32.mul (local.get $row) (i32.const 4))))
      (local.set $last (i32.add (local.get $row) (i32.const 16)))
      (loop $four
        (local.set $first (v128.load (local.get $lane)))
        (local.set $second (v128.bitselect
          (v128.const f32x4 -inf -inf -inf -inf)
          (f32x4.mul
            (f32x4.mul (local.get $first) (f32x4.splat (local.get $factor)))
            (f32x4.convert_i32x4_s (local.get $a)))
          (f32x4.eq (local.get $first) (v128.const f32x4 0 0 0 0))))
        (v128.store offset=512 (local.get $lane) (local.get $second))
        (local.set $bits (i32x4.bitmask (f32x4.gt (local.get $second) (f32x4.splat (local.get $floor)))))
        (block $none
          (loop $each
            (br_if $none (i32.eqz (local.get $bits)))
            (i32.store8
              (i32.add (local.get $found) (local.get $count))
              (i32.add (local.get $row) (i32.ctz (local.get $bits))))
            (local.set $count (i32.add (local.get $count) (i32.const 1)))
            (local.set $bits (i32.and (local.get $bits) (i32.sub (local.get $bits) (i32.const 1))))
            (br $each)))
        (local.set $a (local.get $b))
        (local.set $b (local.get $c))
        (local.set $c (local.get $d))
        (local.set $lane (i32.add (local.get $lane) (i32.const 16)))
        (local.set $row (i32.add (local.get $row) (i32.const 4)))
        (br_if $four (i32.ne (local.get $row) (local.get $last))))
      (br_if $rows (i32.ne (local.get $row) (i32.const 128))))
    (local.get $count)))
