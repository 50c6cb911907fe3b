/** A whole number in digits; one too large to be counted exactly is the largest that is. Undefined for anything else. */
export const parseWholeNumber = (text: string): number | undefined =>
  /^\d+$/.test(text) ? Math.min(Number(text), Number.MAX_SAFE_INTEGER) : undefined
