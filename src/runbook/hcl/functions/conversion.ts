import { FunctionError } from '../errors.ts'
import {
  isList,
  isMap,
  itemsOf,
  sortedKeys,
  toBool,
  toNumber,
  toText,
  typeName,
  ValueSet,
  type Value,
} from '../values.ts'
import { inRange } from '../operators.ts'
import { fixed, type Arguments, type FunctionTable } from './arguments.ts'

/** Contract: runbook.md 3.3, group type and failure; `try` and `can` are the evaluator's. */
export const CONVERSION_FUNCTIONS: FunctionTable = {
  tostring: fixed(1, (a) => unlessNull(a, () => a.text(0))),
  tonumber: fixed(1, (a) => unlessNull(a, () => inRange(toNumber(a.any(0)) ?? a.number(0)))),
  tobool: fixed(1, (a) => unlessNull(a, () => toBool(a.any(0)) ?? a.bool(0))),
  tolist: fixed(1, (a) => unlessNull(a, () => unified(a.list(0)))),
  toset: fixed(1, (a) => unlessNull(a, () => new ValueSet(unified(a.list(0))))),
  tomap: fixed(1, (a) => unlessNull(a, () => a.map(0))),
  typeof: fixed(1, (a) => typeName(a.any(0))),
  sensitive: fixed(1, (a, scope) => {
    scope.conceal?.(a.any(0))
    return a.any(0)
  }),
  /** Masking goes by text, so that what was concealed once stays so; the value is the same. */
  nonsensitive: fixed(1, (a) => a.any(0)),
}

const unlessNull = (a: Arguments, convert: () => Value): Value => (a.any(0) === null ? null : convert())

/** Elements of one type: primitives of different types become text. */
function unified(items: readonly Value[]): readonly Value[] {
  const types = new Set(items.filter((item) => item !== null).map(typeName))
  if (types.size < 2) return items
  return items.map((item) => {
    const text = item === null ? null : toText(item)
    if (text === undefined) throw new FunctionError(`the items are of different types: ${[...types].join(', ')}`, 0)
    return text
  })
}

/** Every text in a value, for masking. */
export function* textsIn(value: Value): Generator<string> {
  const text = toText(value)
  if (text !== undefined) yield text
  else if (isList(value) || value instanceof ValueSet) for (const item of itemsOf(value) ?? []) yield* textsIn(item)
  else if (isMap(value)) for (const key of sortedKeys(value)) yield* textsIn(value[key] ?? null)
}
