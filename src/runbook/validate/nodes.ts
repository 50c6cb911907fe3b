import { constantText, type Attribute, type Expression } from '../hcl/ast.ts'
import { didYouMean, type Diagnostic } from '../hcl/diagnostics.ts'
import { EvaluationError } from '../hcl/errors.ts'
import { evaluate } from '../hcl/evaluate.ts'
import { textsIn } from '../hcl/functions/conversion.ts'
import { constantScope } from '../hcl/scope.ts'
import type { Value } from '../hcl/values.ts'
import type { Workflow, WorkflowNode } from '../model.ts'
import { builtInNames, builtInType } from '../node-types.ts'
import { nameHint } from '../block-reader.ts'
import { calls, isConstant } from '../references.ts'
import { aggregateFault } from '../nodes/aggregate.ts'
import type { NodeMetadata, NodeRegistry } from '../registry.ts'
import { payloadTypeFault } from '../run/trigger.ts'
import { alternativesFault, conform, SchemaMismatch, type Schema } from '../schema.ts'
import { callFault } from './references.ts'

const META = ['description', 'when', 'timeout', 'retry', 'on_error']
const MISMATCH = { type: 'RB210', value: 'RB211', duration: 'RB216' } as const

/** Type, attributes and error policy of one node. */
export function* checkNode(workflow: Workflow, node: WorkflowNode, registry: NodeRegistry): Generator<Diagnostic> {
  const { id: nodeId, type, typeAs } = node
  const owner = `node ${typeAs ?? type} "${nodeId}"`
  const metadata = registry.metadata(type)
  if (!metadata) {
    const hint = didYouMean(type, [...builtInNames(), ...registry.types()], workflow.source)
    yield {
      level: 'error',
      code: 'RB212',
      message: `unknown node type "${type}"`,
      range: node.typeRange,
      nodeId,
      ...hint,
    }
    return
  }
  if (metadata.category === 'orchestrator' && !registry.has(type)) {
    yield {
      level: 'warning',
      code: 'RB316',
      message: `${owner} needs an orchestrator client`,
      range: node.typeRange,
      nodeId,
    }
  } else if (metadata.category !== 'trigger' && !registry.has(type)) {
    const message = `no executor is registered for "${type}": a run stops here`
    yield { level: 'warning', code: 'RB315', message, range: node.typeRange, nodeId }
  }
  if (metadata.inputSchema) yield* checkAttributes(node, metadata, owner)
  if (type === 'code') {
    yield* checkCode(node)
    yield* checkRequirements(node)
  }
  for (const block of node.blocks) {
    const known = Object.keys(metadata.inputSchema?.properties ?? {})
    const more = nameHint(block.type, [...known, ...META], workflow.source)
    yield {
      level: 'error',
      code: 'RB206',
      message: `unknown block "${block.type}" on ${owner}`,
      range: block.typeRange,
      nodeId,
      ...more,
    }
  }
  if (node.onError === 'branch' && !handlesErrors(workflow, nodeId)) {
    const message = `on_error = "branch" of ${owner} needs an edge with on = "error" or "always"`
    yield { level: 'error', code: 'RB312', message, range: node.idRange, nodeId }
  }
}

/** In code `${` is a mistake even around a constant: it would be taken out of the program. Contract: runbook.md 6.7. */
function* checkCode({ attributes, id: nodeId }: WorkflowNode): Generator<Diagnostic> {
  const code = attributes.get('code')?.value
  if (code?.kind !== 'template' || !isConstant(code, false) || code.parts.every(({ kind }) => kind === 'text')) return
  const hint = 'write $${ for a literal ${'
  yield { level: 'error', code: 'RB214', message: '"code" must be constant', range: code.range, nodeId, hint }
}

/** Packages of `code` whose version isn't fixed: the next run may get others. Contract: runbook.md 6.7. */
function* checkRequirements({ attributes, id: nodeId }: WorkflowNode): Generator<Diagnostic> {
  const list = attributes.get('requirements')?.value
  if (list?.kind !== 'tuple') return
  for (const item of list.items) {
    const requirement = constantText(item)
    if (requirement === undefined || /==|===| @ /.test(requirement)) continue
    const message = `requirement "${requirement}" is not pinned`
    yield { level: 'warning', code: 'RB218', message, range: item.range, nodeId, hint: `${requirement}==<version>` }
  }
}

/** Null counts as absent, but where an attribute takes any value. */
const isTyped = (schema: Schema | undefined): boolean => schema?.type !== undefined

const isNull = (expression: Expression): boolean => expression.kind === 'literal' && expression.value === null

const handlesErrors = ({ edges }: Workflow, nodeId: string): boolean =>
  edges.some(({ from, on }) => from === nodeId && (on === 'error' || on === 'always'))

function* checkAttributes(node: WorkflowNode, metadata: NodeMetadata, owner: string): Generator<Diagnostic> {
  const { inputSchema: schema = {} } = metadata
  const { properties = {}, required = [], additionalProperties = !schema.properties } = schema
  const names = Object.keys(properties)
  const nodeId = node.id
  for (const [name, attribute] of node.attributes) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (property) yield* checkAttribute(name, attribute, property, nodeId, metadata)
    else if (additionalProperties === false) {
      const more = nameHint(attribute.name, [...names, ...META], attribute.nameRange.source)
      const message = `unknown attribute "${attribute.name}" on ${owner}`
      yield { level: 'error', code: 'RB205', message, range: attribute.nameRange, nodeId, ...more }
    }
  }
  const isGiven = (name: string): boolean => {
    const value = node.attributes.get(name)?.value
    return value !== undefined && (isTyped(properties[name]) ? !isNull(value) : true)
  }
  const operation = node.attributes.get('operation')?.value
  const fault =
    node.type === 'aggregate'
      ? aggregateFault(operation && constantText(operation), isGiven)
      : alternativesFault(schema, isGiven)
  if (fault) {
    yield { level: 'error', code: fault.code, message: `${owner} ${fault.message}`, range: node.idRange, nodeId }
  }
  for (const name of required) {
    if (isGiven(name)) continue
    yield {
      level: 'error',
      code: 'RB209',
      message: `missing attribute "${name}" on ${owner}`,
      range: node.idRange,
      nodeId,
    }
  }
}

function* checkAttribute(
  name: string,
  { value: expression }: Attribute,
  schema: Schema,
  nodeId: string,
  { conditions = [], category }: NodeMetadata,
): Generator<Diagnostic> {
  const { range } = expression
  const mustBeConstant = schema.evaluation === 'constant'
  if (!isConstant(expression, !mustBeConstant)) {
    if (mustBeConstant) yield { level: 'error', code: 'RB214', message: `"${name}" must be constant`, range, nodeId }
    return
  }
  // reported with the references
  if (schema.evaluation === 'item' || [...calls(expression)].some(callFault)) return
  let value: Value
  try {
    value = evaluate(expression, constantScope())
  } catch (error) {
    if (!(error instanceof EvaluationError)) throw error
    const hint = error.hint === undefined ? {} : { hint: error.hint }
    yield { level: 'error', code: 'RB410', message: error.message, range: error.range, nodeId, ...hint }
    return
  }
  if (schema.sensitive === true && [...textsIn(value)].some((text) => text !== '')) {
    const hint = 'give it with --secret and write secret.<name>'
    yield { level: 'warning', code: 'RB219', message: `"${name}" is a literal credential`, range, nodeId, hint }
  }
  if (value === null || (conditions.includes(name) && typeof value === 'string')) return
  try {
    conform(value, schema, name)
  } catch (error) {
    if (!(error instanceof SchemaMismatch)) throw error
    const allowed = schema.enum?.filter((item) => typeof item === 'string') ?? []
    const hint = typeof value === 'string' ? didYouMean(value, allowed) : {}
    yield { level: 'error', code: MISMATCH[error.kind], message: error.message, range, nodeId, ...hint }
    return
  }
  const fault = category === 'trigger' ? triggerFault(name, value) : undefined
  if (fault !== undefined) yield { level: 'error', code: 'RB211', message: fault, range, nodeId }
}

function triggerFault(name: string, value: Value): string | undefined {
  if (name === 'inputs') return payloadTypeFault(value)
  return name === 'timezone' && typeof value === 'string' && !isTimeZone(value)
    ? `${name}: "${value}" is no time zone such as Europe/Zurich`
    : undefined
}

/** Of the IANA database; newer versions of Node also take offsets, which have no name. */
function isTimeZone(name: string): boolean {
  try {
    Intl.DateTimeFormat('en', { timeZone: name })
    return /^[A-Za-z]/.test(name)
  } catch {
    return false
  }
}

export const isTrigger = (type: string): boolean => builtInType(type)?.category === 'trigger'
