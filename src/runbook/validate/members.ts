import { didYouMean, type Diagnostic } from '../hcl/diagnostics.ts'
import type { Reference } from '../references.ts'

/** What has fixed members, in expressions; `{{ }}` looks further. Contract: runbook.md 3.2. */
const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  run: ['id', 'attempt', 'workflow', 'file', 'started_at'],
  self: ['id', 'type'],
  loop: ['item', 'index', 'key', 'count', 'parent'],
  nodes: ['output', 'status', 'error', 'duration_ms'],
}

/** A member that the run, a node or a loop doesn't have. */
export function unknownMember({
  root,
  path,
  braces,
  range,
}: Reference): Pick<Diagnostic, 'code' | 'message' | 'hint'> | undefined {
  const [owner, name] = root === 'nodes' ? [`node "${path[0]}"`, path[1]] : [root, path[0]]
  const known = braces || !Object.hasOwn(MEMBERS, root) ? undefined : MEMBERS[root]
  if (!known || name === undefined || known.includes(name)) return undefined
  const meant = didYouMean(name, known, range.source)
  const hint = root === 'nodes' ? { hint: 'what the node gave is in its "output"', ...meant } : meant
  return { code: 'RB401', message: `${owner} has no "${name}"`, ...hint }
}
