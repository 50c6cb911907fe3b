import { sha256 } from '../base/hash.ts'
import { children, type Expression, type TemplatePart } from './hcl/ast.ts'
import type { Workflow, WorkflowEdge, WorkflowNode } from './model.ts'
import { references } from './references.ts'

/** The meaning of an expression as text: comments and layout don't change it. */
function meaning(expression: Expression | undefined): string {
  if (!expression) return ''
  if (expression.kind === 'template') return partsMeaning(expression.parts)
  return `${expression.kind}(${own(expression)};${children(expression).map(meaning).join(',')})`
}

/** What an expression says itself, beside its parts. */
function own(expression: Expression): string {
  switch (expression.kind) {
    case 'literal':
      return String(expression.value)
    case 'variable':
    case 'attribute':
      return expression.name
    case 'call':
      return `${expression.name}${expression.spread ? '...' : ''}`
    case 'unary':
    case 'binary':
      return expression.operator
    case 'for':
      return [expression.keyName, expression.valueName, expression.key !== undefined, expression.group].join(' ')
    default:
      return ''
  }
}

const partsMeaning = (parts: readonly TemplatePart[]): string => parts.map(partMeaning).join('')

function partMeaning(part: TemplatePart): string {
  switch (part.kind) {
    case 'text':
      return JSON.stringify(part.value)
    case 'interpolation':
      return `\${${meaning(part.value)}}`
    case 'if':
      return `if(${meaning(part.condition)},${partsMeaning(part.then)},${partsMeaning(part.else)})`
    case 'for':
      return `for(${part.keyName ?? ''} ${part.valueName},${meaning(part.collection)},${partsMeaning(part.body)})`
  }
}

type Attributes = WorkflowNode['attributes']

const attributesMeaning = (attributes: Attributes): string[] =>
  [...attributes].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, { value }]) => `${name}=${meaning(value)}`)

/** Digests by node id. Contract: runbook.md 9. */
export const nodeDigests = (workflow: Workflow): Record<string, string> =>
  Object.fromEntries(meanings(workflow).map(([id, text]) => [id, sha256(text)]))

/** Changes when any node, edge, input or local changes. */
export function workflowDigest(workflow: Workflow): string {
  const inputs = [...workflow.inputs.values()].map(({ name, type, default: value, required }) => [
    name,
    type,
    value ?? null,
    required,
  ])
  return sha256(JSON.stringify([workflow.name, inputs, meanings(workflow)]))
}

const known = new WeakMap<Workflow, readonly (readonly [string, string])[]>()

/** Node ids with what changes when the node, its incoming edges or a local that they use change. */
function meanings(workflow: Workflow): readonly (readonly [string, string])[] {
  const before = known.get(workflow)
  if (before) return before
  const incoming = new Map<string, WorkflowEdge[]>()
  for (const edge of workflow.edges) {
    const list = incoming.get(edge.to)
    if (list) list.push(edge)
    else incoming.set(edge.to, [edge])
  }
  const found = workflow.nodes.map(
    (node) => [node.id, nodeMeaning(workflow, node, incoming.get(node.id) ?? [])] as const,
  )
  known.set(workflow, found)
  return found
}

function nodeMeaning(workflow: Workflow, node: WorkflowNode, incoming: readonly WorkflowEdge[]): string {
  const edges = incoming.map(({ from, on, condition, when }) => [from, on, meaning(condition), meaning(when)].join('|'))
  const expressions = [
    ...[...node.attributes.values(), ...(node.retry?.attributes.values() ?? [])].map(({ value }) => value),
    node.when,
    node.timeout,
    ...incoming.flatMap(({ condition, when }) => [condition, when]),
  ].filter((expression) => expression !== undefined)
  return JSON.stringify([
    node.type,
    node.onError ?? '',
    meaning(node.when),
    meaning(node.timeout),
    attributesMeaning(node.attributes),
    node.retry ? attributesMeaning(node.retry.attributes) : '',
    edges.sort(),
    usedLocals(workflow, expressions).map((name) => [name, meaning(workflow.locals.get(name)?.value)]),
  ])
}

/** Names of the locals that expressions use, directly or through other locals, sorted. */
function usedLocals(workflow: Workflow, expressions: readonly Expression[]): string[] {
  if (workflow.locals.size === 0) return []
  const used = new Set<string>()
  const open = [...expressions]
  for (let expression = open.pop(); expression; expression = open.pop()) {
    for (const { root, path } of references(expression)) {
      if (root !== 'local') continue
      for (const name of path[0] === undefined ? workflow.locals.keys() : [path[0]]) {
        const local = workflow.locals.get(name)
        if (!local || used.has(name)) continue
        used.add(name)
        open.push(local.value)
      }
    }
  }
  return [...used].sort()
}
