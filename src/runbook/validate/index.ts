import { buildGraph } from '../graph.ts'
import { byPosition, type Diagnostic } from '../hcl/diagnostics.ts'
import type { Value } from '../hcl/values.ts'
import { resolveInputs } from '../inputs.ts'
import type { Workflow } from '../model.ts'
import type { NodeRegistry } from '../registry.ts'
import { checkEdgeEnds, checkGraph, cycleDiagnostic } from './graph.ts'
import { checkNode } from './nodes.ts'
import { checkReferences } from './references.ts'

export interface ValidateOptions {
  readonly registry: NodeRegistry
  /** Inputs given to the run; without them, missing ones are only infos. */
  readonly inputs?: Readonly<Record<string, Value>>
  /** Allowed environment names, and secrets; without them, uses of others are only infos. */
  readonly env?: Readonly<Record<string, unknown>>
  readonly secrets?: Readonly<Record<string, unknown>>
  /** RB411 is an error. */
  readonly strict?: boolean
}

/** Everything of runbook.md 2–4 and 6 that is decidable without running, ordered by position. */
export function validateWorkflow(workflow: Workflow, options: ValidateOptions): Diagnostic[] {
  const found: Diagnostic[] = []
  for (const node of workflow.nodes) found.push(...checkNode(workflow, node, options.registry))
  found.push(...checkEdgeEnds(workflow, options.registry))
  const graph = buildGraph(workflow)
  if ('cycle' in graph) found.push(cycleDiagnostic(workflow, graph.cycle))
  else found.push(...checkGraph(graph, options.registry))
  found.push(...checkReferences(workflow, 'cycle' in graph ? undefined : graph, options))
  const level = options.inputs ? 'error' : 'info'
  for (const problem of resolveInputs(workflow, options.inputs ?? {}).problems) found.push({ level, ...problem })
  return found.sort(byPosition)
}
