import type { BinaryOperator } from './ast.ts'
import { FunctionError } from './errors.ts'
import { canonicalNumber, fifteenDigits, remainder } from './numbers.ts'
import { describe, equals, toBool, toNumber, type Value } from './values.ts'

/** The operators that evaluate both sides. A refused operand is a `FunctionError` naming side 0 or 1. */
export function applyOperator(operator: Exclude<BinaryOperator, '&&' | '||'>, left: Value, right: Value): Value {
  if (operator === '==') return equals(left, right)
  if (operator === '!=') return !equals(left, right)
  const a = operand(left, 0, operator)
  const b = operand(right, 1, operator)
  switch (operator) {
    case '+':
      return inRange(a + b)
    case '-':
      return inRange(a - b)
    case '*':
      return inRange(a * b)
    case '/':
      if (b === 0) throw new FunctionError('division by zero', 1)
      return inRange(a / b)
    case '%':
      if (b === 0) throw new FunctionError('division by zero', 1)
      return inRange(remainder(a, b))
    case '<':
      return fifteenDigits(a) < fifteenDigits(b)
    case '<=':
      return fifteenDigits(a) <= fifteenDigits(b)
    case '>':
      return fifteenDigits(a) > fifteenDigits(b)
    case '>=':
      return fifteenDigits(a) >= fifteenDigits(b)
  }
}

/** @throws FunctionError for an integer beyond ±(2^53−1) and for infinity */
export function inRange(value: number): number {
  const number = canonicalNumber(value)
  if (number === undefined) throw new FunctionError(`${value} is outside the range of numbers, ±(2^53-1) for integers`)
  return number
}

function operand(value: Value, side: number, operator: string): number {
  const converted = toNumber(value)
  if (converted === undefined) {
    const joined = operator === '+' && typeof value === 'string' ? '; texts are joined as "${a}${b}"' : ''
    throw new FunctionError(`expected a number, found ${describe(value)}${joined}`, side)
  }
  return inRange(converted)
}

/** @throws FunctionError unless the value is a bool, or the text of one */
export function logical(value: Value): boolean {
  const converted = toBool(value)
  if (converted === undefined) throw new FunctionError(`expected a bool, found ${describe(value)}`)
  return converted
}
