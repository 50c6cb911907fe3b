import { FunctionError } from '../errors.ts'
import { ValueSet, type Value } from '../values.ts'
import { encodeJson } from '../json.ts'
import { typeName } from '../values.ts'
import { atLeast, fixed, type Arguments, type FunctionTable } from './arguments.ts'

/** Set functions of runbook.md 3.3; lists are taken for sets. */
export const SET_FUNCTIONS: FunctionTable = {
  setunion: atLeast(1, (a) => new ValueSet(sets(a).flat())),
  setintersection: atLeast(1, (a) => {
    const [first = [], ...others] = sets(a)
    return new ValueSet(
      others.map(identities).reduce((left, right) => left.filter((v) => right.has(identity(v))), first),
    )
  }),
  setsubtract: fixed(2, (a) => {
    const [first = [], second = []] = sets(a)
    const removed = identities(second)
    return new ValueSet(first.filter((value) => !removed.has(identity(value))))
  }),
  setproduct: atLeast(2, (a) => {
    const lists = a.rest(0, (i) => a.list(i))
    const size = lists.reduce((product, list) => product * list.length, 1)
    if (!Number.isSafeInteger(size)) throw new FunctionError('the product is too large')
    a.budget.spend(size * lists.length)
    return lists.reduce<Value[][]>((rows, list) => rows.flatMap((row) => list.map((item) => [...row, item])), [[]])
  }),
}

const sets = (a: Arguments): (readonly Value[])[] => a.rest(0, (i) => a.list(i))

/** Equal values, and only they, have equal texts. */
const identity = (value: Value): string => `${typeName(value)} ${encodeJson(value)}`

const identities = (values: readonly Value[]): ReadonlySet<string> => new Set(values.map(identity))
