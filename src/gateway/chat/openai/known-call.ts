/** What a call, or a piece of one, tells of which it is. */
interface Told {
  readonly index?: unknown
  readonly id?: unknown
}

/**
 * The call that a piece goes on with; undefined where it begins one. Some providers leave the index out, or give all calls
 * the same one.
 */
export function knownCall<C extends Told>(calls: readonly C[], { index, id }: Told, isNamed: boolean): C | undefined {
  const last = isNamed ? undefined : calls.at(-1)
  const call =
    typeof index === 'number'
      ? calls.findLast((each) => each.index === index)
      : id
        ? calls.find((each) => each.id === id)
        : last
  return isNamed && id && id !== call?.id ? undefined : call
}
