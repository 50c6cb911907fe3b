/** Where a path leads to, with what its parts that vary were. */
interface Found<T> {
  pattern: string
  value: T
  params: Record<string, string>
}

/** The next parts of a path. */
interface Node<T> {
  literal: Map<string, Node<T>>
  /** By how they are written. */
  varying: Map<string, Varying<T>>
  end: { pattern: string; value: T } | undefined
}

interface Varying<T> {
  names: string[]
  /** With a group for each name; undefined where one name is all. */
  pattern: RegExp | undefined
  next: Node<T>
}

/**
 * Values by patterns of paths: `:name` varies, `:name(pattern)` varies as told, `::` is a colon. What is written out comes
 * before what varies. What varies is never empty and holds no U+0000, which PostgreSQL cannot even look for.
 */
export class RouteTree<T> {
  readonly #root: Node<T> = newNode()
  readonly #create: () => T

  constructor(create: () => T) {
    this.#create = create
  }

  /** The value of a pattern, made when it is first asked for. */
  at(pattern: string): T {
    let node = this.#root
    for (const part of pattern.split('/')) {
      const text = part.replaceAll('::', '')
      node = text.includes(':') ? varyingOf(node, part).next : literalOf(node, part)
    }
    node.end ??= { pattern, value: this.#create() }
    return node.end.value
  }

  find(path: string): Found<T> | undefined {
    const params = {}
    const end = descend(this.#root, path.split('/').map(decoded), 0, params)
    return end && { ...end, params }
  }
}

const newNode = <T>(): Node<T> => ({ literal: new Map(), varying: new Map(), end: undefined })

function literalOf<T>(node: Node<T>, part: string): Node<T> {
  const text = part.replaceAll('::', ':')
  const next = node.literal.get(text) ?? newNode()
  node.literal.set(text, next)
  return next
}

function varyingOf<T>(node: Node<T>, part: string): Varying<T> {
  const varying = node.varying.get(part) ?? { ...patternOf(part), next: newNode() }
  node.varying.set(part, varying)
  return varying
}

const PARTS = /::|:(\w+)(?:\((?:\^)?([^)]*)\))?|[.*+?^${}()|[\]\\]/g

/** `:id(^[^:@]+)::append` as a pattern for one part of a path. */
function patternOf(part: string): Pick<Varying<unknown>, 'names' | 'pattern'> {
  const names: string[] = []
  const source = part.replace(PARTS, (found, name: string | undefined, kind = '.+') => {
    if (found === '::') return ':'
    if (name === undefined) return `\\${found}`
    names.push(name)
    return `(${kind})`
  })
  return { names, pattern: source === '(.+)' ? undefined : new RegExp(`^${source}$`, 's') }
}

const decoded = (part: string): string => (part.includes('%') ? decodeURIComponent(part) : part)

function descend<T>(
  node: Node<T>,
  parts: readonly string[],
  at: number,
  params: Record<string, string>,
): Node<T>['end'] {
  const part = parts[at]
  if (part === undefined) return node.end
  const literal = node.literal.get(part)
  const end = literal && descend(literal, parts, at + 1, params)
  if (end || part === '' || part.includes('\0')) return end
  for (const { names, pattern, next } of node.varying.values()) {
    const values = pattern ? pattern.exec(part)?.slice(1) : [part]
    const found = values && descend(next, parts, at + 1, params)
    if (!found) continue
    for (const [i, name] of names.entries()) params[name] = values[i] ?? ''
    return found
  }
  return undefined
}
