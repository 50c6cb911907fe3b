import { NodeError } from '../errors.ts'
import { toNumber, type Value } from '../hcl/values.ts'
import type { NodeContext, NodeExecutor } from '../registry.ts'
import { atPath, listItems } from './items.ts'
import { optionalText, text } from './settings.ts'

const OPERATIONS: Readonly<Record<string, (numbers: readonly number[]) => Value>> = {
  sum: (numbers) => finite(total(numbers)),
  avg: (numbers) => (numbers.length > 0 ? finite(total(numbers) / numbers.length) : null),
  min: (numbers) => (numbers.length > 0 ? numbers.reduce((a, b) => Math.min(a, b)) : null),
  max: (numbers) => (numbers.length > 0 ? numbers.reduce((a, b) => Math.max(a, b)) : null),
}

/** One value out of many; values that are no numbers are skipped and counted. Contract: runbook.md 6.2. */
export const aggregateNode: NodeExecutor = {
  type: 'aggregate',
  effects: 'none',
  inputSchema: {
    type: 'object',
    properties: {
      items: { description: 'List, set or JSON text of one' },
      operation: { type: 'string', enum: ['count', 'sum', 'avg', 'min', 'max', 'first', 'last'] },
      field: { type: 'string', minLength: 1, description: 'Dotted path into each item' },
      value: { evaluation: 'item', description: 'Evaluated per item, instead of field' },
    },
    required: ['items', 'operation'],
  },
  execute: ({ config, perItem: { value } }) => {
    const { items = null } = config
    const field = optionalText(config, 'field')
    if (field !== undefined && value)
      throw new NodeError('config_invalid', 'aggregate takes one of "field" and "value"')
    const valueOf = value ?? (field === undefined ? undefined : (item: Value) => atPath(item, field))
    return Promise.resolve({ output: aggregate(listItems(items), text(config, 'operation'), valueOf) })
  },
}

/** What is wrong with the attributes given: one of "field" and "value" at most, and one for what calculates. */
export function aggregateFault(
  operation: string | undefined,
  isGiven: (name: string) => boolean,
): { readonly code: 'RB209' | 'RB213'; readonly message: string } | undefined {
  const given = ['field', 'value'].filter(isGiven)
  if (given.length === 2) return { code: 'RB213', message: 'takes only one of field, value' }
  const calculates = operation !== undefined && Object.hasOwn(OPERATIONS, operation)
  return calculates && given.length === 0 ? { code: 'RB209', message: 'needs one of field, value' } : undefined
}

type ValueOf = NonNullable<NodeContext['perItem'][string]>

function aggregate(items: readonly Value[], operation: string, valueOf?: ValueOf): Value {
  const combine = OPERATIONS[operation]
  if (!combine) return { result: picked(items, operation, valueOf), count: items.length, skipped: 0 }
  if (!valueOf) throw new NodeError('config_invalid', `${operation} needs "field" or "value"`)
  const numbers = items.flatMap((item, index) => toNumber(valueOf(item, index)) ?? [])
  return { result: combine(numbers), count: numbers.length, skipped: items.length - numbers.length }
}

/** `count`, `first` and `last` take any value. */
function picked(items: readonly Value[], operation: string, valueOf: ValueOf = (item) => item): Value {
  if (operation === 'count') return items.length
  const index = operation === 'first' ? 0 : items.length - 1
  const item = items[index]
  return item === undefined ? null : valueOf(item, index)
}

const total = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0)

/** @throws NodeError where doubles end */
function finite(number: number): number {
  if (Number.isFinite(number) && (!Number.isInteger(number) || Number.isSafeInteger(number))) return number
  throw new NodeError('limit_exceeded', 'the result is beyond the range of numbers')
}
