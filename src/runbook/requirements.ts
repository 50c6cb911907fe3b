import type { Expression } from './hcl/ast.ts'
import type { Workflow, WorkflowNode } from './model.ts'
import { references } from './references.ts'
import type { NodeRegistry } from './registry.ts'

/** What a workflow needs from outside. Contract: runbook.md 8. */
export interface Requirements {
  /** Inputs without default. */
  readonly inputs: readonly string[]
  readonly secrets: readonly string[]
  readonly env: readonly string[]
  /** Types of nodes that reach outside the process. */
  readonly services: readonly string[]
}

/** What a workflow names of inputs, secrets, environment and services, sorted. */
export function requirements(workflow: Workflow, registry: NodeRegistry): Requirements {
  const named = { secret: new Set<string>(), env: new Set<string>() }
  for (const expression of expressionsOf(workflow)) {
    for (const { root, path } of references(expression)) {
      if ((root === 'secret' || root === 'env') && path[0] !== undefined) named[root].add(path[0])
    }
  }
  const services = workflow.nodes.map(({ type }) => type).filter((type) => registry.metadata(type)?.effects !== 'none')
  return {
    inputs: [...workflow.inputs.values()].filter(({ required }) => required).map(({ name }) => name),
    secrets: [...named.secret].sort(),
    env: [...named.env].sort(),
    services: [...new Set(services)].sort(),
  }
}

/** All expressions of a node. */
export function* expressionsOfNode({ attributes, retry, when, timeout }: WorkflowNode): Generator<Expression> {
  for (const { value } of [...attributes.values(), ...(retry?.attributes.values() ?? [])]) yield value
  if (when) yield when
  if (timeout) yield timeout
}

function* expressionsOf({ locals, nodes, edges }: Workflow): Generator<Expression> {
  for (const { value } of locals.values()) yield value
  for (const node of nodes) yield* expressionsOfNode(node)
  for (const { condition, when } of edges) {
    if (condition) yield condition
    if (when) yield when
  }
}
