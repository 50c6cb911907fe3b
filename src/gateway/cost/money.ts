const NANO_PER_USD = 1_000_000_000n
const USD = /^(\d{1,9})(?:\.(\d{1,9}))?$/

/** Nano-dollars of a decimal string in USD; undefined when it is none, or finer. Contract: gateway.md 2. */
export function parseUsd(text: string): bigint | undefined {
  const [, whole, fraction = ''] = USD.exec(text) ?? []
  return whole === undefined ? undefined : BigInt(whole) * NANO_PER_USD + BigInt(fraction.padEnd(9, '0'))
}

/** A decimal string in USD without trailing zeros. */
export function formatUsd(nano: bigint): string {
  const digits = (nano % NANO_PER_USD).toString().padStart(9, '0').replace(/0+$/, '')
  return `${nano / NANO_PER_USD}${digits && `.${digits}`}`
}

/** Half goes to the even neighbour. Of numbers that are not negative. */
export function divideHalfEven(dividend: bigint, divisor: bigint): bigint {
  const quotient = dividend / divisor
  const twice = (dividend % divisor) * 2n
  if (twice === divisor) return quotient + (quotient % 2n)
  return twice > divisor ? quotient + 1n : quotient
}
