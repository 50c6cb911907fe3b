import { BlockReader, nameHint } from './block-reader.ts'
import type { Attribute, Block, Body } from './hcl/ast.ts'
import { ERROR_NAMES } from './errors.ts'
import { byPosition, didYouMean, fileDiagnostic, type Diagnostic } from './hcl/diagnostics.ts'
import { parseFile } from './hcl/parser-body.ts'
import type { Source } from './hcl/source.ts'
import { equals, itemsOf, toBool, toNumber, toText, type Value } from './hcl/values.ts'
import {
  EDGE_EVENTS,
  ON_ERROR,
  type Workflow,
  type WorkflowEdge,
  type WorkflowInput,
  type WorkflowNode,
} from './model.ts'
import { builtInType } from './node-types.ts'
import { isConstant } from './references.ts'
import { convert, parseType, TypeMismatch, type TypeConstraint } from './type-constraint.ts'

export interface ParsedWorkflow {
  /** Absent when the file has no single, well-formed `workflow`. */
  readonly workflow?: Workflow
  readonly diagnostics: readonly Diagnostic[]
  /** Syntax faults beyond the first twenty. */
  readonly omitted: number
}

const MAX_NODES = 10_000
const MAX_EDGES = 50_000
export const MAX_CONCURRENCY = 256

/** Reads a workflow file. Never throws. Contract: runbook.md 2, 11. */
export function parseWorkflow(text: string | Uint8Array, file = '<workflow>'): ParsedWorkflow {
  const { source, body, diagnostics, omitted } = parseFile(text, file)
  const reader = new WorkflowReader(source, [...diagnostics])
  const workflow = reader.read(body)
  return { ...(workflow && { workflow }), diagnostics: reader.diagnostics.sort(byPosition), omitted }
}

const camelCase = (name: string): string =>
  name.includes('_') ? name.replace(/(?<=[a-z0-9])_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()) : name

const META = new Set(['description', 'when', 'timeout', 'on_error', 'retry', 'onError'])
const RETRY = ['attempts', 'backoff', 'max_backoff', 'jitter', 'on']
const BLOCKS = ['input', 'locals', 'node', 'edge']
// oxlint-disable-next-line no-control-regex -- node ids have none
const NODE_ID = /^[^.{}\x00-\x1f\x7f-\x9f]{1,128}$/u

class WorkflowReader extends BlockReader {
  private readonly source: Source
  private readonly inputs = new Map<string, WorkflowInput>()
  private readonly locals = new Map<string, Attribute>()
  private readonly nodes = new Map<string, WorkflowNode>()
  private readonly edges: WorkflowEdge[] = []

  constructor(source: Source, diagnostics: Diagnostic[]) {
    super(diagnostics)
    this.source = source
  }

  read(body: Body): Workflow | undefined {
    for (const { name, nameRange } of body.attributes.values())
      this.error('RB201', `attribute "${name}" outside workflow`, nameRange)
    for (const block of body.blocks) {
      if (block.type !== 'workflow') {
        this.error(
          'RB201',
          `block "${block.type}" outside workflow`,
          block.typeRange,
          nameHint(block.type, ['workflow']),
        )
      }
    }
    const [workflow, ...others] = body.blocks.filter((block) => block.type === 'workflow')
    for (const { headerRange } of others) {
      const related = workflow ? [{ message: 'first workflow at', range: workflow.headerRange }] : []
      this.error('RB203', 'a file holds one workflow', headerRange, { related })
    }
    if (workflow) return this.workflow(workflow)
    if (this.diagnostics.length === 0)
      this.diagnostics.push(fileDiagnostic('RB202', 'the file holds no workflow', this.source))
    return undefined
  }

  private workflow(block: Block): Workflow {
    const { source } = this
    const [name] = this.labels(block, 1, 'workflow "name"')
    const known = ['description', 'timeout', 'concurrency']
    this.unknown(block.body, known, BLOCKS, 'workflow')
    for (const part of block.body.blocks) this.block(part)
    if (this.nodes.size > MAX_NODES) this.error('RB114', `more than ${MAX_NODES} nodes`, block.headerRange)
    if (this.edges.length > MAX_EDGES) this.error('RB114', `more than ${MAX_EDGES} edges`, block.headerRange)
    const { attributes } = block.body
    const description = this.text(attributes.get('description'))
    const timeoutMs = this.timeLimit(attributes.get('timeout'))
    const concurrency = this.concurrency(attributes.get('concurrency'))
    return {
      name: name?.value ?? '',
      file: source.file,
      source,
      range: block.range,
      ...(description !== undefined && { description }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(concurrency !== undefined && { concurrency }),
      inputs: this.inputs,
      locals: this.locals,
      nodes: [...this.nodes.values()],
      edges: this.edges,
    }
  }

  private block(block: Block): void {
    if (block.type === 'input') this.input(block)
    else if (block.type === 'locals') this.local(block)
    else if (block.type === 'node') this.node(block)
    else if (block.type === 'edge') this.edge(block)
  }

  private concurrency(attribute: Attribute | undefined): number | undefined {
    const value = this.typed(attribute, 'a number', toNumber)
    if (value === undefined || !attribute || (Number.isInteger(value) && value >= 1 && value <= MAX_CONCURRENCY))
      return value
    this.error('RB211', `"concurrency" is a whole number from 1 to ${MAX_CONCURRENCY}`, attribute.value.range)
    return undefined
  }

  private input(block: Block): void {
    const [label] = this.labels(block, 1, 'input "name"')
    this.unknown(block.body, ['type', 'default', 'required', 'enum', 'description', 'sensitive'], [], 'input')
    if (!label || !this.identifier(label.value, label.range, this.inputs.get(label.value)?.range)) return
    const { attributes } = block.body
    const type = this.type(attributes.get('type'))
    const fallback = this.fits(attributes.get('default'), this.constant(attributes.get('default')), type)
    const allowed = this.typed(attributes.get('enum'), 'a list', itemsOf)
    if (fallback !== undefined && allowed && !allowed.some((value) => equals(value, fallback))) {
      this.error(
        'RB211',
        'the default is not among the allowed values',
        attributes.get('default')?.value.range ?? block.range,
      )
    }
    const description = this.text(attributes.get('description'))
    this.inputs.set(label.value, {
      name: label.value,
      range: label.range,
      type,
      ...(fallback !== undefined && { default: fallback }),
      required: this.bool(attributes.get('required')) ?? !attributes.has('default'),
      ...(allowed && { enum: allowed }),
      ...(description !== undefined && { description }),
      sensitive: this.bool(attributes.get('sensitive')) ?? false,
    })
  }

  private type(attribute: Attribute | undefined): TypeConstraint {
    if (!attribute) return { kind: 'any' }
    const type = parseType(attribute.value)
    if (!('invalid' in type)) return type
    this.error('RB211', 'no type', type.invalid, {
      hint: 'string number bool any list(T) map(T) set(T) object({...}) tuple([...])',
    })
    return { kind: 'any' }
  }

  private fits(attribute: Attribute | undefined, value: Value | undefined, type: TypeConstraint): Value | undefined {
    if (value === undefined || !attribute) return undefined
    try {
      return convert(value, type)
    } catch (error) {
      if (!(error instanceof TypeMismatch)) throw error
      this.error('RB210', error.message, attribute.value.range)
      return undefined
    }
  }

  private local(block: Block): void {
    this.labels(block, 0, 'locals { }')
    this.unknown(block.body, [...block.body.attributes.keys()], [], 'locals')
    for (const attribute of block.body.attributes.values()) {
      const first = this.locals.get(attribute.name)?.nameRange
      if (this.identifier(attribute.name, attribute.nameRange, first)) this.locals.set(attribute.name, attribute)
    }
  }

  private node(block: Block): void {
    const [type, id] = this.labels(block, 2, 'node "type" "id"')
    if (!type || !id) return
    const first = this.nodes.get(id.value)
    if (first) {
      const related = [{ message: 'first defined at', range: first.idRange }]
      this.error('RB207', `node "${id.value}" is defined twice`, id.range, { related, nodeId: id.value })
      return
    }
    if (!NODE_ID.test(id.value)) {
      this.error('RB215', 'a node id has 1 to 128 characters, without control characters, ".", "{" and "}"', id.range)
    }
    const owner = `node ${type.value} "${id.value}"`
    const { attributes } = block.body
    const canonical = builtInType(type.value)?.type ?? type.value
    const description = this.text(attributes.get('description'))
    const onError = this.oneOf(this.either(attributes, 'on_error', owner), ON_ERROR)
    const retry = this.retry(block.body, owner)
    const { nameRange: retried } = attributes.get('retry') ?? {}
    if (retried) this.error('RB205', `"retry" on ${owner} is a block`, retried, { hint: 'retry { attempts = 3 }' })
    const when = attributes.get('when')?.value
    const timeout = attributes.get('timeout')
    if (timeout && isConstant(timeout.value)) this.timeLimit(timeout)
    this.nodes.set(id.value, {
      id: id.value,
      index: this.nodes.size,
      type: canonical,
      ...(canonical !== type.value && { typeAs: type.value }),
      ...(description !== undefined && { description }),
      ...(when && { when }),
      ...(timeout && { timeout: timeout.value }),
      ...(onError && { onError }),
      ...(retry && { retry }),
      attributes: this.nodeAttributes(attributes, owner),
      blocks: block.body.blocks.filter(({ type: name }) => name !== 'retry'),
      range: block.range,
      typeRange: type.range,
      idRange: id.range,
    })
  }

  /** A meta-argument under its name or its camelCase spelling. */
  private either(attributes: Body['attributes'], name: string, owner: string): Attribute | undefined {
    const other = attributes.get(camelCase(name))
    const found = attributes.get(name)
    if (found && other)
      this.error('RB213', `"${name}" and "${other.name}" exclude each other on ${owner}`, other.nameRange)
    return found ?? other
  }

  private nodeAttributes(attributes: Body['attributes'], owner: string): Map<string, Attribute> {
    const result = new Map<string, Attribute>()
    for (const attribute of attributes.values()) {
      if (META.has(attribute.name)) continue
      const name = camelCase(attribute.name)
      const first = result.get(name)
      if (first) {
        const message = `"${first.name}" and "${attribute.name}" are the same attribute of ${owner}`
        this.error('RB213', message, attribute.nameRange, {
          related: [{ message: 'first at', range: first.nameRange }],
        })
      } else result.set(name, attribute)
    }
    return result
  }

  private retry(body: Body, owner: string): WorkflowNode['retry'] {
    const [retry, second] = body.blocks.filter((block) => block.type === 'retry')
    if (!retry) return undefined
    if (second) this.error('RB213', `two retry blocks on ${owner}`, second.headerRange)
    this.labels(retry, 0, 'retry { }')
    this.unknown(retry.body, [...RETRY, 'maxBackoff'], [], `retry of ${owner}`)
    const attempts = retry.body.attributes.get('attempts')
    if (attempts && isConstant(attempts.value)) {
      const count = this.typed(attempts, 'a number', toNumber)
      if (count !== undefined && !(Number.isInteger(count) && count >= 1 && count <= 20)) {
        this.error('RB211', '"attempts" is a whole number from 1 to 20', attempts.value.range)
      }
    }
    for (const name of ['backoff', 'max_backoff']) {
      const attribute = retry.body.attributes.get(name)
      if (attribute && isConstant(attribute.value)) this.duration(attribute)
    }
    const jitter = retry.body.attributes.get('jitter')
    if (jitter && isConstant(jitter.value)) this.typed(jitter, 'true or false', toBool)
    this.retriedErrors(retry.body.attributes.get('on'))
    return { range: retry.range, attributes: retry.body.attributes }
  }

  private retriedErrors(attribute: Attribute | undefined): void {
    if (!attribute || !isConstant(attribute.value)) return
    for (const item of this.typed(attribute, 'a list of classes or codes of errors', itemsOf) ?? []) {
      const name = toText(item) ?? ''
      if (ERROR_NAMES.includes(name)) continue
      const message = `"${name}" is no class or code of errors`
      this.error('RB211', message, attribute.value.range, didYouMean(name, ERROR_NAMES))
    }
  }

  private edge(block: Block): void {
    const [from, to] = this.labels(block, 2, 'edge "from" "to"')
    this.unknown(block.body, ['condition', 'when', 'on'], [], 'edge')
    if (!from || !to) return
    const { attributes } = block.body
    const condition = attributes.get('condition')?.value
    const when = attributes.get('when')?.value
    const edge: WorkflowEdge = {
      index: this.edges.length,
      from: from.value,
      to: to.value,
      ...(condition && { condition }),
      ...(when && { when }),
      on: this.oneOf(attributes.get('on'), EDGE_EVENTS) ?? 'success',
      range: block.headerRange,
      fromRange: from.range,
      toRange: to.range,
    }
    this.edges.push(edge)
  }
}
