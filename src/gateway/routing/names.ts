/** Which names a list admits: names, or patterns with one `*` at the end. Contract: gateway.md 2.1. */
export class Names {
  readonly exact: ReadonlySet<string>
  readonly #starts: readonly string[]

  constructor(list: readonly string[]) {
    this.exact = new Set(list.filter((each) => !each.endsWith('*')))
    this.#starts = list.filter((each) => each.endsWith('*')).map((each) => each.slice(0, -1))
  }

  get isEmpty(): boolean {
    return this.exact.size === 0 && this.#starts.length === 0
  }

  has(name: string): boolean {
    return this.exact.has(name) || this.#starts.some((start) => name.startsWith(start))
  }
}

const NEAR = 5
/** What is compared at most: of a name, and of names. */
const COMPARED_LENGTH = 64
const COMPARED_NAMES = 500

export const quoted = (name: string): string => `"${name.slice(0, 200)}"`

/** Which names `name` may have meant, for the end of a message; empty when none is near. */
export function nearHint(name: string, names: readonly string[]): string {
  const near = nearNames(name, names).map(quoted)
  return near.length > 0 ? `; names near it: ${near.join(', ')}` : ''
}

/** Up to five of the names that `name` may have meant, the nearest first. */
function nearNames(name: string, names: readonly string[]): string[] {
  const asked = name.slice(0, COMPARED_LENGTH).toLowerCase()
  return names
    .slice(0, COMPARED_NAMES)
    .map((each) => ({ each, distance: distanceOf(asked, each.slice(0, COMPARED_LENGTH).toLowerCase()) }))
    .filter(({ each, distance }) => distance <= Math.max(2, Math.min(asked.length, each.length) / 2))
    .sort((a, b) => a.distance - b.distance)
    .slice(0, NEAR)
    .map(({ each }) => each)
}

/** Edits between them; a name that begins with the other is near whatever its end. */
function distanceOf(asked: string, name: string): number {
  if (asked !== '' && (name.startsWith(asked) || asked.startsWith(name))) return 1
  let row = Array.from({ length: name.length + 1 }, (_, i) => i)
  for (let i = 1; i <= asked.length; i++) {
    const next = [i]
    for (let j = 1; j <= name.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (asked[i - 1] === name[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[name.length] ?? 0
}
