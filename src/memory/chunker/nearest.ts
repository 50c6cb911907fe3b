/** A number of one of the two lists, between those still free before and after it. */
interface Node {
  at: number
  isLeft: boolean
  isPaired: boolean
  before: Node | undefined
  after: Node | undefined
}

/** Two nodes of different lists that stand side by side. */
interface Pair {
  first: Node
  second: Node
}

/**
 * Pairs the numbers of two lists, each once, the closest pair first. The closest pair always stands side by side among the
 * numbers still free, and taking it brings together the two around it: a heap of such pairs makes it n log n, so that
 * thousands of equal Cells are no matter.
 */
export function pairNearest(left: readonly number[], right: readonly number[]): [left: number, right: number][] {
  const heap = new PairHeap()
  const join = (first: Node | undefined, second: Node | undefined): void => {
    if (first) first.after = second
    if (second) second.before = first
    if (first && second && first.isLeft !== second.isLeft) heap.push({ first, second })
  }
  const node = (at: number, isLeft: boolean): Node => ({
    at,
    isLeft,
    isPaired: false,
    before: undefined,
    after: undefined,
  })
  const nodes = [...left.map((at) => node(at, true)), ...right.map((at) => node(at, false))]
  let last: Node | undefined
  for (const next of nodes.toSorted((a, b) => a.at - b.at)) {
    join(last, next)
    last = next
  }
  const pairs: [number, number][] = []
  for (let pair = heap.pop(); pair; pair = heap.pop()) {
    const { first, second } = pair
    if (first.isPaired || second.isPaired) continue
    first.isPaired = second.isPaired = true
    pairs.push(first.isLeft ? [first.at, second.at] : [second.at, first.at])
    join(first.before, second.after)
  }
  return pairs
}

/** Of two equally close pairs the one further left comes first. */
const isCloser = (a: Pair, b: Pair): boolean => {
  const difference = a.second.at - a.first.at - (b.second.at - b.first.at)
  return difference < 0 || (difference === 0 && a.first.at < b.first.at)
}

/** Binary heap, the closest pair on top. */
class PairHeap {
  readonly #pairs: Pair[] = []

  push(pair: Pair): void {
    let at = this.#pairs.length
    for (let parent = (at - 1) >> 1; at > 0; at = parent, parent = (at - 1) >> 1) {
      const above = this.#pairs[parent]
      if (!above || !isCloser(pair, above)) break
      this.#pairs[at] = above
    }
    this.#pairs[at] = pair
  }

  pop(): Pair | undefined {
    const [top] = this.#pairs
    const pair = this.#pairs.pop()
    if (!pair || pair === top) return top
    let at = 0
    for (;;) {
      const [left, right] = [this.#pairs[2 * at + 1], this.#pairs[2 * at + 2]]
      const child = left && right && isCloser(right, left) ? right : left
      if (!child || !isCloser(child, pair)) break
      this.#pairs[at] = child
      at = child === right ? 2 * at + 2 : 2 * at + 1
    }
    this.#pairs[at] = pair
    return top
  }
}
