import { NodeError } from '../errors.ts'
import { KnownAfterRun } from '../hcl/errors.ts'
import { evaluate } from '../hcl/evaluate.ts'
import { constantScope } from '../hcl/scope.ts'
import { has, mapOf, newMap, type Value, type ValueMap } from '../hcl/values.ts'
import type { WorkflowNode } from '../model.ts'
import type { NodeContext, NodeMetadata } from '../registry.ts'
import { alternativesFault, conformProperties, SchemaMismatch, type Schema } from '../schema.ts'
import { evaluateCondition } from './condition.ts'
import type { NodeScope } from './node-scope.ts'
import { KNOWN_AFTER_RUN } from './state.ts'

export interface NodeConfig {
  readonly values: ValueMap
  readonly perItem: NodeContext['perItem']
  /** In a dry run: attributes that aren't known yet. */
  readonly unknown: readonly string[]
}

/** The attributes of a node, evaluated once and checked. @throws NodeError, EvaluationError */
export function evaluateConfig(node: WorkflowNode, metadata: NodeMetadata, scope: NodeScope): NodeConfig {
  const schema = metadata.inputSchema ?? {}
  const values = newMap()
  const perItem: Record<string, (item: Value, index: number) => Value> = {}
  const unknown: string[] = []
  for (const [name, { value: expression }] of node.attributes) {
    const evaluation = schema.properties?.[name]?.evaluation
    const isCondition = metadata.conditions?.includes(name) === true
    const read = (from: NodeScope): Value =>
      isCondition ? evaluateCondition(expression, from) : evaluate(expression, from)
    if (evaluation === 'item') perItem[name] = (item, index) => read(scope.withItem(item, index))
    else if (evaluation === 'constant') values[name] = evaluate(expression, constantScope())
    else if (!assignKnown(values, name, () => read(scope))) unknown.push(name)
  }
  return { values: unknown.length > 0 ? values : checked(node, values, perItem, schema), perItem, unknown }
}

/** What a plan or dry run shows. */
export const shownConfig = ({ values, unknown }: NodeConfig): ValueMap =>
  mapOf([...Object.entries(values), ...unknown.map((name) => [name, KNOWN_AFTER_RUN] as const)])

function assignKnown(values: Record<string, Value>, name: string, read: () => Value): boolean {
  try {
    values[name] = read()
    return true
  } catch (error) {
    if (error instanceof KnownAfterRun) return false
    throw error
  }
}

function checked(node: WorkflowNode, values: ValueMap, perItem: NodeConfig['perItem'], schema: Schema): ValueMap {
  const required = schema.required?.filter((name) => perItem[name] === undefined) ?? []
  try {
    const config = conformProperties(values, { ...schema, required }, '')
    const fault = alternativesFault(schema, (name) => has(config, name) || perItem[name] !== undefined)
    if (fault) throw new NodeError('config_invalid', `${node.type} "${node.id}" ${fault.message}`)
    return config
  } catch (error) {
    if (!(error instanceof SchemaMismatch)) throw error
    throw new NodeError('config_invalid', `${node.type} "${node.id}": ${error.message}`)
  }
}
