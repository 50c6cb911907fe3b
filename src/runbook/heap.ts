/** A binary heap: `pop` takes the least item. */
export class Heap<T> {
  private readonly items: T[] = []
  private readonly compare: (a: T, b: T) => number

  constructor(compare: (a: T, b: T) => number) {
    this.compare = compare
  }

  get size(): number {
    return this.items.length
  }

  push(item: T): void {
    const { items } = this
    let at = items.push(item) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = items[parent]
      if (above === undefined || this.compare(above, item) <= 0) break
      items[at] = above
      at = parent
    }
    items[at] = item
  }

  pop(): T | undefined {
    const { items } = this
    const top = items[0]
    const last = items.pop()
    if (items.length === 0 || last === undefined) return top
    let at = 0
    for (;;) {
      const left = 2 * at + 1
      const right = left + 1
      const lesser = this.less(right, left) ? right : left
      const child = items[lesser]
      if (child === undefined || this.compare(last, child) <= 0) break
      items[at] = child
      at = lesser
    }
    items[at] = last
    return top
  }

  private less(a: number, b: number): boolean {
    const [left, right] = [this.items[a], this.items[b]]
    return left !== undefined && right !== undefined && this.compare(left, right) < 0
  }
}
