/** A wait before the next attempt (ms), at random below a bound that doubles: many that failed together come apart. */
export const backOff = (failures: number, first: number, most: number, random = Math.random): number =>
  random() * Math.min(first * 2 ** (failures - 1), most)
