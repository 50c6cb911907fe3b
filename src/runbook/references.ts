import { children, constantText, type Expression, type TemplatePart } from './hcl/ast.ts'
import { pathPieces } from './hcl/path-template.ts'
import type { SourceRange } from './hcl/source.ts'

/** A use of a root variable: `nodes["a b"].output` is root `nodes`, path `["a b", "output"]`, up to the first dynamic key. */
export interface Reference {
  readonly root: string
  readonly path: readonly string[]
  readonly range: SourceRange
  /** Written as `{{ path }}`. */
  readonly braces: boolean
}

/** All references of an expression to names that it doesn't bind itself; `braces` off where `{{` is plain text. */
export function references(expression: Expression, braces = true): Reference[] {
  const found: Reference[] = []
  collect(expression, new Set(), braces, found)
  return found
}

/** All function calls of an expression. */
export function* calls(expression: Expression): Generator<Extract<Expression, { kind: 'call' }>> {
  if (expression.kind === 'call') yield expression
  for (const child of children(expression)) yield* calls(child)
}

type Bound = ReadonlySet<string>

function collect(expression: Expression, bound: Bound, braces: boolean, found: Reference[]): void {
  const chain = referenceChain(expression)
  if (chain) {
    if (!bound.has(chain.root)) found.push({ ...chain, braces: false })
    for (const key of chain.dynamic) collect(key, bound, braces, found)
  } else if (expression.kind === 'template') collectParts(expression.parts, bound, braces, found)
  else if (expression.kind === 'for') {
    collect(expression.collection, bound, braces, found)
    const inner = bind(bound, expression)
    for (const part of children(expression).slice(1)) collect(part, inner, braces, found)
  } else for (const child of children(expression)) collect(child, bound, braces, found)
}

function collectParts(parts: readonly TemplatePart[], bound: Bound, braces: boolean, found: Reference[]): void {
  for (const part of parts) {
    if (part.kind === 'interpolation') collect(part.value, bound, braces, found)
    else if (part.kind === 'if') {
      collect(part.condition, bound, braces, found)
      collectParts([...part.then, ...part.else], bound, braces, found)
    } else if (part.kind === 'for') {
      collect(part.collection, bound, braces, found)
      collectParts(part.body, bind(bound, part), braces, found)
    } else if (braces) {
      for (const piece of pathPieces(part)) {
        if (piece.kind !== 'path') continue
        const [root = '', ...path] = piece.segments
        found.push({ root: root === 'bindings' ? 'input' : root, path, range: piece.range, braces: true })
      }
    }
  }
}

const bind = (bound: Bound, { keyName, valueName }: { keyName?: string; valueName: string }): Bound =>
  new Set([...bound, valueName, ...(keyName === undefined ? [] : [keyName])])

interface Chain {
  root: string
  path: string[]
  range: SourceRange
  /** Keys that are expressions of their own. */
  dynamic: Expression[]
}

/** `root.a["b"][expression].c`; undefined when the expression is no such chain. */
function referenceChain(expression: Expression): Chain | undefined {
  if (expression.kind === 'variable') return { root: expression.name, path: [], range: expression.range, dynamic: [] }
  if (expression.kind !== 'attribute' && expression.kind !== 'index') return undefined
  const chain = referenceChain(expression.object)
  if (!chain) return undefined
  const key = expression.kind === 'attribute' ? expression.name : constantKey(expression.key)
  if (key === undefined && expression.kind === 'index') chain.dynamic.push(expression.key)
  if (chain.dynamic.length === 0 && key !== undefined) {
    chain.path.push(key)
    chain.range = expression.range
  }
  return chain
}

const constantKey = (key: Expression): string | undefined =>
  key.kind === 'literal' && typeof key.value === 'number' ? String(key.value) : constantText(key)

/** Functions whose value isn't fixed by the text. */
const IMPURE = new Set(['timestamp', 'file', 'fileexists', 'filebase64'])

/** Whether the expression means the same in every run. */
export function isConstant(expression: Expression, braces = true): boolean {
  if (references(expression, braces).length > 0) return false
  for (const call of calls(expression)) if (IMPURE.has(call.name)) return false
  return true
}
