import type { TextPart } from './ast.ts'
import type { SourceRange } from './source.ts'

/** Where a `{{ path }}` may begin. Contract: runbook.md 3.4. */
export const PATH_ROOTS: ReadonlySet<string> = new Set(
  'trigger bindings prev nodes var run self elapsed_ms input local loop env secret item index'.split(' '),
)

/** Text, or the path between `{{` and `}}`. */
type PathPiece =
  | { readonly kind: 'text'; readonly value: string }
  | { readonly kind: 'path'; readonly segments: readonly string[]; readonly range: SourceRange }

const OPEN = /\{\{\{\{|\{\{([^{}]*)\}\}/g

const cache = new WeakMap<TextPart, readonly PathPiece[]>()

/** The pieces of a constant text; one text piece when it holds no path. Worked out once a part. */
export function pathPieces(part: TextPart): readonly PathPiece[] {
  let pieces = cache.get(part)
  if (!pieces) cache.set(part, (pieces = split(part)))
  return pieces
}

function split({ value, range }: TextPart): PathPiece[] {
  const pieces: PathPiece[] = []
  let text = ''
  let copied = 0
  for (const match of value.matchAll(OPEN)) {
    text += value.slice(copied, match.index)
    copied = match.index + match[0].length
    const segments = match[1] === undefined ? undefined : pathSegments(match[1])
    if (segments) {
      if (text !== '') pieces.push({ kind: 'text', value: text })
      pieces.push({ kind: 'path', segments, range })
      text = ''
    } else text += match[1] === undefined ? '{{' : match[0]
  }
  text += value.slice(copied)
  if (text !== '' || pieces.length === 0) pieces.push({ kind: 'text', value: text })
  return pieces
}

function pathSegments(path: string): string[] | undefined {
  const segments = path.trim().split('.')
  return PATH_ROOTS.has(segments[0] ?? '') && !segments.includes('') ? segments : undefined
}

/** `{{…}}` in the text that are no paths and stay as written (RB411). */
export function* nonPaths({ value }: TextPart): Generator<string> {
  for (const [whole, path] of value.matchAll(OPEN)) if (path !== undefined && !pathSegments(path)) yield whole
}
