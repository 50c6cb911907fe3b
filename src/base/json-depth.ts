/** Of lists and objects in one another: far from where walking them overflows the stack. */
export const DEPTH_MAX = 1000

export const isTooDeep = (value: unknown, left = DEPTH_MAX): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (left < 0 || Object.values(value).some((item) => isTooDeep(item, left - 1)))
