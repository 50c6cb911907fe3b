/** Significant digits of non-integers. Contract: runbook.md 3.1. */
const DIGITS = 15

/** Undefined for integers beyond ±(2^53−1) and for what is no number; non-integers get 15 significant digits. */
export function canonicalNumber(value: number): number | undefined {
  if (Number.isSafeInteger(value)) return value === 0 ? 0 : value
  return Number.isInteger(value) || !Number.isFinite(value) ? undefined : fifteenDigits(value)
}

/** `value` as it is written and compared: 0.1 + 0.2 is 0.3. */
export const fifteenDigits = (value: number): number =>
  Number.isInteger(value) || !Number.isFinite(value) ? value : Number(value.toPrecision(DIGITS))

export const numberText = (value: number): string => String(fifteenDigits(value))

/** The number a text stands for, in HCL's decimal form. */
export function parseNumber(text: string): number | undefined {
  return /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(text) ? canonicalNumber(Number(text)) : undefined
}

/** Remainder with the sign of `a`, exact in decimal: 11 % 5.1 is 0.8, where doubles give 0.8000000000000007. */
export function remainder(a: number, b: number): number {
  if (Number.isSafeInteger(a) && Number.isSafeInteger(b)) return a % b
  const [left, right] = [decimal(a), decimal(b)]
  const exponent = Math.min(left.exponent, right.exponent)
  const scaled = (part: Decimal): bigint => part.digits * 10n ** BigInt(part.exponent - exponent)
  return Number(`${scaled(left) % scaled(right)}e${exponent}`)
}

interface Decimal {
  digits: bigint
  exponent: number
}

function decimal(value: number): Decimal {
  const [mantissa = '0', exponent = '0'] = fifteenDigits(value).toExponential().split('e')
  const [whole = '0', fraction = ''] = mantissa.split('.')
  return { digits: BigInt(whole + fraction), exponent: Number(exponent) - fraction.length }
}
