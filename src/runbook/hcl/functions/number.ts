import { FunctionError } from '../errors.ts'
import { inRange } from '../operators.ts'
import { atLeast, fixed, type FunctionTable } from './arguments.ts'

/** Contract: runbook.md 3.3, group number. */
export const NUMBER_FUNCTIONS: FunctionTable = {
  abs: fixed(1, (a) => Math.abs(a.number(0))),
  ceil: fixed(1, (a) => inRange(Math.ceil(a.number(0)))),
  floor: fixed(1, (a) => inRange(Math.floor(a.number(0)))),
  signum: fixed(1, (a) => inRange(Math.sign(a.number(0)))),
  max: atLeast(1, (a) => a.rest(0, (i) => a.number(i)).reduce((x, y) => (y > x ? y : x))),
  min: atLeast(1, (a) => a.rest(0, (i) => a.number(i)).reduce((x, y) => (y < x ? y : x))),
  pow: fixed(2, (a) => inRange(a.number(0) ** a.number(1))),
  log: fixed(2, (a) => inRange(Math.log(a.number(0)) / Math.log(a.number(1)))),
  parseint: fixed(2, (a) => parseInteger(a.text(0), a.integer(1))),
  sum: fixed(1, (a) => {
    const numbers = a.numbers(0)
    if (numbers.length === 0) throw new FunctionError('the list is empty', 0)
    return inRange(numbers.reduce((x, y) => x + y))
  }),
}

const DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz'

function parseInteger(text: string, base: number): number {
  if (base < 2 || base > 36) throw new FunctionError('the base is 2 to 36', 1)
  const [, sign = '', digits = ''] = /^([+-]?)(.+)$/.exec(text) ?? []
  const valid = digits !== '' && [...digits.toLowerCase()].every((digit) => DIGITS.slice(0, base).includes(digit))
  if (!valid) throw new FunctionError(`"${text.slice(0, 40)}" is no integer of base ${base}`, 0)
  return inRange(Number.parseInt(sign + digits, base))
}
