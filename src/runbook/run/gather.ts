import { constantText } from '../hcl/ast.ts'
import { isList, isMap, mapOf, newMap, type Value } from '../hcl/values.ts'
import type { WorkflowNode } from '../model.ts'
import { failureValue } from './node-scope.ts'
import type { Pass } from './pass.ts'
import { UNKNOWN, type Output } from './state.ts'

/** What a node sees as `prev`. Contract: runbook.md 3.2. */
export function previous(pass: Pass, node: WorkflowNode): Output {
  if (node.type === 'join') return gather(pass, node)
  const { frame } = pass
  const outputs = pass.liveEdges(node.index).map(({ edge, from }): [string, Output] => {
    if (from === frame.opener) return [edge.from, frame.iteration?.item ?? null]
    const { status, error, continued, output = null } = frame.state(from) ?? {}
    const isTold = status === 'failed' && error && !continued
    return [edge.from, isTold ? mapOf([['error', failureValue(error)]]) : output]
  })
  return oneOrAll(outputs)
}

/** The output if there is one alone, a map of them by id if there are several. */
export function oneOrAll(outputs: readonly (readonly [string, Output])[]): Output {
  const [only, ...others] = outputs
  if (!only) return null
  return others.length === 0 ? only[1] : combined(outputs)
}

/** The output of a join over what arrived. Contract: runbook.md 4.4, 4.5. */
function gather(pass: Pass, node: WorkflowNode): Output {
  const loop = pass.loopOutput(node.index)
  if (loop !== undefined) return loop === UNKNOWN ? UNKNOWN : loopJoin(loop)
  const mode = node.attributes.get('mode')
  const text = (mode && constantText(mode.value)) ?? 'all'
  const edges = text === 'all' ? pass.liveEdges(node.index) : pass.arrivals(node.index)
  const outputs = edges.map(({ from, edge }) => [edge.from, sourceOutput(pass, from)] as const)
  if (text === 'stream') return listed(outputs.map(([, output]) => output))
  const known = combined(outputs)
  if (known === UNKNOWN || !isMap(known)) return UNKNOWN
  return mapOf(
    Object.entries({
      mode: text,
      count: outputs.length,
      sources: outputs.map(([id]) => id),
      results: outputs.map(([id]) => known[id] ?? null),
      merged: mergeAll(outputs.map(([id]) => known[id] ?? null)),
    }),
  )
}

function sourceOutput({ frame }: Pass, from: number): Output {
  return from === frame.opener ? (frame.iteration?.item ?? null) : (frame.state(from)?.output ?? null)
}

/** A map of outputs, unknown as a whole when one of them is. */
function combined(outputs: readonly (readonly [string, Output])[]): Output {
  const known: [string, Value][] = []
  for (const [id, output] of outputs) {
    if (output === UNKNOWN) return UNKNOWN
    known.push([id, output])
  }
  return mapOf(known)
}

/** A list of outputs, unknown as a whole when one of them is. */
export function listed(outputs: readonly Output[]): Output {
  const known = outputs.flatMap((output) => (output === UNKNOWN ? [] : [output]))
  return known.length === outputs.length ? known : UNKNOWN
}

const mergeAll = (results: readonly Value[]): Value =>
  mapOf(results.filter(isMap).flatMap((result) => Object.entries(result)))

function loopJoin(loop: Value): Value {
  if (!isMap(loop)) return loop
  const { results = [], count = 0, errors } = loop
  const merged = newMap()
  for (const [i, result] of (isList(results) ? results : []).entries()) {
    if (isMap(result)) for (const [key, value] of Object.entries(result)) merged[`${key}_${i}`] = value
  }
  return mapOf(Object.entries({ mode: 'loop', count, results, merged, ...(errors !== undefined && { errors }) }))
}
