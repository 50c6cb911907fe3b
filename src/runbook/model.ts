import type { Attribute, Block, Expression } from './hcl/ast.ts'
import type { Source, SourceRange } from './hcl/source.ts'
import type { Value } from './hcl/values.ts'
import type { TypeConstraint } from './type-constraint.ts'

export const EDGE_EVENTS = ['success', 'error', 'skipped', 'always'] as const
type EdgeEvent = (typeof EDGE_EVENTS)[number]

export const ON_ERROR = ['fail', 'continue', 'branch'] as const
type OnError = (typeof ON_ERROR)[number]

/** A workflow as it is written, names resolved to canonical ones. Contract: runbook.md 2.2, 2.3. */
export interface Workflow {
  readonly name: string
  readonly file: string
  readonly source: Source
  readonly range: SourceRange
  readonly description?: string
  readonly timeoutMs?: number
  readonly concurrency?: number
  readonly inputs: ReadonlyMap<string, WorkflowInput>
  readonly locals: ReadonlyMap<string, Attribute>
  readonly nodes: readonly WorkflowNode[]
  readonly edges: readonly WorkflowEdge[]
}

export interface WorkflowInput {
  readonly name: string
  readonly range: SourceRange
  readonly type: TypeConstraint
  /** Absent when there is none. */
  readonly default?: Value
  readonly required: boolean
  readonly enum?: readonly Value[]
  readonly description?: string
  readonly sensitive: boolean
}

export interface WorkflowNode {
  readonly id: string
  /** Position among the declared nodes. */
  readonly index: number
  readonly type: string
  /** The alias that was written. */
  readonly typeAs?: string
  readonly description?: string
  readonly when?: Expression
  readonly timeout?: Expression
  readonly onError?: OnError
  /** Attributes of the block `retry`. */
  readonly retry?: { readonly range: SourceRange; readonly attributes: ReadonlyMap<string, Attribute> }
  /** The rest, by camelCase name. */
  readonly attributes: ReadonlyMap<string, Attribute>
  readonly blocks: readonly Block[]
  readonly range: SourceRange
  readonly typeRange: SourceRange
  readonly idRange: SourceRange
}

export interface WorkflowEdge {
  readonly index: number
  readonly from: string
  readonly to: string
  readonly condition?: Expression
  readonly when?: Expression
  readonly on: EdgeEvent
  readonly range: SourceRange
  readonly fromRange: SourceRange
  readonly toRange: SourceRange
}

export const edgeId = ({ from, to }: Pick<WorkflowEdge, 'from' | 'to'>): string => `${from}->${to}`
