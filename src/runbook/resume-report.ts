import { buildGraph, type Graph } from './graph.ts'
import { fromJson } from './hcl/json.ts'
import { isMap, type Value } from './hcl/values.ts'
import type { Workflow, WorkflowNode } from './model.ts'
import { builtInType } from './node-types.ts'
import { references } from './references.ts'
import { expressionsOfNode } from './requirements.ts'
import { prepareResume, UnusableOutputError, type ResumeOptions } from './resume.ts'
import type { Journal } from './run/read-journal.ts'
import type { ResumeState } from './run/options.ts'
import type { NodeRecord } from './run/record.ts'
import type { ReportNode, RunReport } from './run/report.ts'

/** A report as the journal of its run, as far as it tells; variables of the command line are not in it. */
export function journalOfReport(workflow: Workflow, report: RunReport): Journal {
  const { run, startedAt, inputs, triggerData, nodes } = report
  const isOpen = ([name]: [string, Value]): boolean => workflow.inputs.get(name)?.sensitive === false
  const digests = nodes.flatMap(({ id, digest }) => (digest === undefined ? [] : [[id, digest] as const]))
  return {
    header: {
      runId: run.id,
      attempt: run.attempt,
      workflow: report.workflow.name,
      file: report.workflow.file,
      startedAt,
      inputs: isMap(inputs) ? Object.fromEntries(Object.entries(inputs).filter(isOpen)) : {},
      sensitive: [],
      triggerData: fromJson(triggerData ?? null),
      variables: {},
      digests: Object.fromEntries(digests),
      workflowDigest: report.workflow.digest,
      reused: [],
    },
    attempt: run.attempt,
    records: recordsOf(workflow, report),
    unfinished: [],
  }
}

/**
 * What a run that goes on from a report reuses. Contract: runbook.md 9.
 * @throws ChangedError, UnusableOutputError for an output that is needed, and masked or cut off in the report
 */
export function resumeFromReport(workflow: Workflow, report: RunReport, options: ResumeOptions): ResumeState {
  const state = prepareResume(workflow, journalOfReport(workflow, report), options)
  const graph = buildGraph(workflow)
  if ('cycle' in graph) return state
  // what opens a body runs again, with the outputs of the body
  const opens = ({ id }: NodeRecord): boolean => graph.bodies.has(graph.indexes.get(id) ?? -1)
  const withheld = [...state.nodes.values()].filter((record) => record.withheld && !opens(record))
  if (withheld.length === 0) return state
  const needed = neededOutputs(graph, (node) => !state.nodes.has(node.id) || graph.bodies.has(node.index))
  const unusable = withheld.filter(({ id, path }) => path !== id || needed.has(id)).map(({ path }) => path)
  if (unusable.length === 0) return state
  throw new UnusableOutputError(`masked or truncated outputs that are needed: ${unusable.join(', ')}`)
}

/** Ids of the nodes whose outputs are read by nodes that run. */
function neededOutputs(graph: Graph, runs: (node: WorkflowNode) => boolean): Set<string> {
  const needed = new Set<string>()
  const ancestors = (node: WorkflowNode): WorkflowNode[] =>
    graph.nodes.filter(({ index }) => graph.isAncestor(index, node.index))
  for (const node of graph.nodes.filter(runs)) {
    const incoming = graph.incoming[node.index] ?? []
    const conditions = incoming.flatMap(({ edge: { condition, when } }) => [condition, when])
    const expressions = [...expressionsOfNode(node), ...conditions.filter((each) => each !== undefined)]
    const named = expressions.flatMap((expression) => references(expression))
    const isFed = node.type === 'join' || node.type === 'split' || !builtInType(node.type)
    if (isFed || named.some(({ root }) => root === 'prev')) for (const { edge } of incoming) needed.add(edge.from)
    for (const { root, path } of named) {
      if (root === 'nodes' && path[0] !== undefined) needed.add(path[0])
      else if (root === 'nodes') for (const { id } of ancestors(node)) needed.add(id)
      else if (root === 'var') for (const { id, type } of ancestors(node)) if (type === 'set') needed.add(id)
    }
  }
  return needed
}

/** By path; what a report shows of the nodes of a body as a whole is no record. */
function recordsOf(workflow: Workflow, { nodes, toleratedFailures }: RunReport): Map<string, NodeRecord> {
  const tolerated = new Set(toleratedFailures.map(({ node }) => node))
  const continued = new Set(workflow.nodes.filter(({ onError }) => onError === 'continue').map(({ id }) => id))
  const records = new Map<string, NodeRecord>()
  const inBodies = new Set<string>()
  const keep = (entries: readonly ReportNode[], prefix: string): void => {
    for (const entry of entries) {
      const path = `${prefix}${entry.id}`
      if (prefix !== '') inBodies.add(entry.id)
      records.set(path, recordOf(entry, path, tolerated.has(path), continued.has(entry.id)))
      for (const iteration of entry.iterations ?? []) {
        if ('nodes' in iteration) keep(iteration.nodes, `${path}[${iteration.index}]/`)
      }
    }
  }
  keep(nodes, '')
  for (const id of inBodies) records.delete(id)
  return records
}

function recordOf(entry: ReportNode, path: string, tolerated: boolean, continued: boolean): NodeRecord {
  const { id, status, output, branch, error, attempts, durationMs, redacted, truncated } = entry
  return {
    path,
    id,
    status,
    output: output ?? null,
    ...(branch !== undefined && { branch }),
    ...(error && { error }),
    ...(tolerated && { tolerated, continued }),
    ...((redacted === true || truncated === true) && { withheld: true }),
    attempts,
    durationMs: durationMs ?? 0,
  }
}
