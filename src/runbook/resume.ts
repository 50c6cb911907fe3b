import { nodeDigests } from './digest.ts'
import { buildGraph } from './graph.ts'
import { fromJson } from './hcl/json.ts'
import { equals, type Value } from './hcl/values.ts'
import type { Workflow } from './model.ts'
import { builtInType, type Effects } from './node-types.ts'
import type { Journal } from './run/read-journal.ts'
import type { ResumeState } from './run/options.ts'
import { fromRecord, isFinished, type NodeRecord } from './run/record.ts'

export interface ResumeOptions {
  /** Inputs given again; others come from the journal. */
  readonly inputs?: Readonly<Record<string, Value>>
  readonly triggerData?: unknown
  /** Reuse what is unchanged together with all its ancestors, instead of refusing. */
  readonly acceptChanges?: boolean
  readonly from: string
}

/** RB607: what changed since the run that is to be resumed. */
export class ChangedError extends Error {
  readonly changes: readonly string[]

  constructor(changes: readonly string[]) {
    super(`the definition changed since this run: ${changes.join(', ')}`)
    this.changes = changes
  }
}

/** What a resumed run reuses. Contract: runbook.md 9. @throws ChangedError, UnusableOutputError */
export function prepareResume(workflow: Workflow, journal: Journal, options: ResumeOptions): ResumeState {
  const { header, records, attempt } = journal
  const digests = nodeDigests(workflow)
  const isChanged = (id: string): boolean => digests[id] !== header.digests[id]
  const changedNodes = new Set(
    [...records.values()].filter(isFinished).flatMap(({ id }) => (isChanged(id) ? [id] : [])),
  )
  const changes = [...changedInputs(journal, options), ...[...changedNodes].map((id) => `node "${id}"`)]
  if (changes.length > 0 && !options.acceptChanges) throw new ChangedError(changes)
  refuseRepeating(workflow, records)
  const finished = new Map([...records].filter(([, record]) => fromRecord(record)))
  return {
    runId: header.runId,
    attempt: attempt + 1,
    startedAt: header.startedAt,
    // an edited loop did not finish, but items of it may have
    nodes: withoutDescendants(workflow, finished, new Set(Object.keys(header.digests).filter(isChanged))),
    from: options.from,
  }
}

/** RB608: an output that is needed is masked or truncated. */
export class UnusableOutputError extends Error {}

/** A node whose output was masked runs again, which one with external effects must not. */
function refuseRepeating(workflow: Workflow, records: Journal['records']): void {
  const types = new Map(workflow.nodes.map(({ id, type }) => [id, type]))
  const masked = [...records.values()].filter(
    ({ id, redacted, status }) =>
      redacted && status === 'succeeded' && types.has(id) && effectsOf(types.get(id) ?? '') === 'external',
  )
  if (masked.length === 0) return
  throw new UnusableOutputError(`masked outputs in the journal: ${masked.map(({ path }) => path).join(', ')}`)
}

const effectsOf = (type: string): Effects => builtInType(type)?.effects ?? 'external'

function changedInputs({ header }: Journal, { inputs = {}, triggerData }: ResumeOptions): string[] {
  const changed = Object.entries(inputs).flatMap(([name, value]) => {
    const before = header.inputs[name]
    return before === undefined || equals(before, value) ? [] : [`input "${name}"`]
  })
  const sameTrigger = triggerData === undefined || equals(fromJson(triggerData), header.triggerData)
  return sameTrigger ? changed : [...changed, 'trigger data']
}

/** The records of nodes that are neither changed nor behind a changed one. */
function withoutDescendants(
  workflow: Workflow,
  finished: ReadonlyMap<string, NodeRecord>,
  changed: ReadonlySet<string>,
): ReadonlyMap<string, NodeRecord> {
  const graph = buildGraph(workflow)
  if (changed.size === 0 || 'cycle' in graph) return finished
  const isStale = (id: string): boolean => {
    const index = graph.indexes.get(id)
    if (index === undefined || changed.has(id)) return true
    return [...changed].some((other) => graph.isAncestor(graph.indexes.get(other) ?? -1, index))
  }
  return new Map([...finished].filter(([, { id }]) => !isStale(id)))
}
