import type { Budget } from '../budget.ts'
import { FunctionError } from '../errors.ts'
import type { Scope } from '../scope.ts'
import { describe, isMap, itemsOf, toBool, toNumber, toText, type Value, type ValueMap } from '../values.ts'

/** The arguments of one call, converted as they are asked for; what doesn't convert is a `FunctionError`. */
export class Arguments {
  readonly values: readonly Value[]
  readonly budget: Budget

  constructor(values: readonly Value[], budget: Budget) {
    this.values = values
    this.budget = budget
  }

  get count(): number {
    return this.values.length
  }

  any(index: number): Value {
    return this.values[index] ?? null
  }

  text(index: number): string {
    const text = toText(this.any(index))
    if (text === undefined) throw this.wrong(index, 'text')
    this.budget.spend(text.length / 64)
    return text
  }

  number(index: number): number {
    const number = toNumber(this.any(index))
    if (number === undefined) throw this.wrong(index, 'a number')
    return number
  }

  integer(index: number, least = Number.MIN_SAFE_INTEGER): number {
    const number = this.number(index)
    if (!Number.isInteger(number)) throw this.wrong(index, 'a whole number')
    if (number < least) throw new FunctionError(`expected a number of at least ${least}, found ${number}`, index)
    return number
  }

  bool(index: number): boolean {
    const bool = toBool(this.any(index))
    if (bool === undefined) throw this.wrong(index, 'a bool')
    return bool
  }

  /** The items of a list or set. */
  list(index: number): readonly Value[] {
    const items = itemsOf(this.any(index))
    if (!items) throw this.wrong(index, 'a list')
    this.budget.spend(items.length / 8)
    return items
  }

  texts(index: number): string[] {
    return this.list(index).map((item) => {
      const text = toText(item)
      if (text === undefined) throw new FunctionError(`expected a list of text, found ${describe(item)} in it`, index)
      return text
    })
  }

  numbers(index: number): number[] {
    return this.list(index).map((item) => {
      const number = toNumber(item)
      if (number === undefined)
        throw new FunctionError(`expected a list of numbers, found ${describe(item)} in it`, index)
      return number
    })
  }

  map(index: number): ValueMap {
    const value = this.any(index)
    if (!isMap(value)) throw this.wrong(index, 'a map')
    this.budget.spend(Object.keys(value).length / 8)
    return value
  }

  /** `read` for every argument from `from` on. */
  rest<T>(from: number, read: (index: number) => T): T[] {
    return this.values.slice(from).map((_, i) => read(from + i))
  }

  wrong(index: number, expected: string): FunctionError {
    return new FunctionError(`expected ${expected}, found ${describe(this.any(index))}`, index)
  }
}

export interface FunctionDefinition {
  readonly min: number
  readonly max: number
  readonly call: (args: Arguments, scope: Scope) => Value
}

type Body = FunctionDefinition['call']

export const fixed = (count: number, call: Body): FunctionDefinition => ({ min: count, max: count, call })
export const between = (min: number, max: number, call: Body): FunctionDefinition => ({ min, max, call })
export const atLeast = (min: number, call: Body): FunctionDefinition => ({ min, max: Infinity, call })
export type FunctionTable = Readonly<Record<string, FunctionDefinition>>

/** What to say of a call with too few or too many arguments. Contract: RB408. */
export function arityMessage(name: string, min: number, max: number, given: number): string {
  const wanted = min === max ? String(min) : max === Infinity ? `at least ${min}` : `${min} to ${max}`
  return `${name}() takes ${wanted} argument${wanted === '1' ? '' : 's'}, not ${given}`
}
