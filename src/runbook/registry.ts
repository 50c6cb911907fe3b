import type { Socket } from 'node:net'
import type { Value, ValueMap } from './hcl/values.ts'
import type { NetworkOptions } from './outbound/index.ts'
import type { HttpRequest, HttpResponse } from './outbound/request.ts'
import { BUILT_IN_TYPES, builtInType, type Category, type Effects } from './node-types.ts'
import type { CodeRunner, OrchestratorClient } from './ports.ts'
import type { Schema } from './schema.ts'
import { aiNode } from './nodes/ai/index.ts'
import { aggregateNode } from './nodes/aggregate.ts'
import { chatBNode } from './nodes/chat/discord.ts'
import { chatANode } from './nodes/chat/slack.ts'
import { chatCNode } from './nodes/chat/teams.ts'
import { ifNode, switchNode } from './nodes/branch.ts'
import { codeNode } from './nodes/code.ts'
import { delayNode } from './nodes/delay.ts'
import { emailNode } from './nodes/email/index.ts'
import { filterNode } from './nodes/filter.ts'
import { httpNode } from './nodes/http.ts'
import { joinNode, loopNode, splitNode } from './nodes/flow.ts'
import { mergeNode } from './nodes/merge.ts'
import { orchestratorNodes } from './nodes/orchestrator.ts'
import { setNode } from './nodes/set.ts'
import { sortNode } from './nodes/sort.ts'
import { transformNode } from './nodes/transform.ts'
import { vectordbNode } from './nodes/vectordb/index.ts'
import { webhookResponseNode } from './nodes/webhook-response.ts'
import { SCHEMAS_WITHOUT_EXECUTOR } from './nodes/without-executor.ts'

/** What an executor is given. */
export interface NodeContext {
  readonly id: string
  /** Attributes, evaluated and checked against the input schema; those evaluated per item are missing. */
  readonly config: ValueMap
  /** Attributes marked `evaluation: item` that are present. */
  readonly perItem: Readonly<Record<string, ((item: Value, index: number) => Value) | undefined>>
  /** The source text of an attribute. */
  readonly source: (name: string) => string
  readonly prev: Value
  /** From 1. */
  readonly attempt: number
  /** Aborts on time limit and cancellation. */
  readonly signal: AbortSignal
  /** Limit of this attempt, which `signal` keeps. */
  readonly timeoutMs: number | undefined
  /** A dry run executes nodes without effects, and without waiting. */
  readonly dryRun: boolean
  readonly run: { readonly id: string; readonly workflow: string; readonly startedAt: string }
  readonly log: (message: string) => void
  /** A request under the rules of runbook.md 5.1, given up with `signal`. */
  http(url: string, request?: HttpRequest): Promise<HttpResponse>
  /** A TCP connection under the same rules. */
  connect(host: string, port: number): Promise<Socket>
  /** A file below the directory of the workflow, or below an allowed one. Contract: runbook.md 5.4. */
  readFile(path: string): Buffer
  readonly services: NodeServices
}

/** What configuration and environment give to nodes. Contract: runbook.md 6.5, 6.6, 13. */
export interface NodeServices {
  /** Webhooks by channel name; absent where the environment lacks it. */
  readonly channels?: Readonly<Record<string, { readonly type: string; readonly webhookUrl?: string }>>
  /** Keys of model providers, by provider. */
  readonly apiKeys?: Readonly<Record<string, string>>
  /** Where `vectordb` with `provider = "mem"` goes unless its attributes say otherwise. */
  readonly memory?: {
    readonly endpoint?: string
    readonly apiKey?: string
    readonly agentId?: string
    readonly workspace?: string
  }
  /** `embeddingProvider = "hash"`: the vector of a text, made without a network. */
  readonly embedByHash?: (text: string) => Promise<ArrayLike<number>>
}

export interface NodeResult {
  readonly output: Value
  /** Key of the branch that the node chose. */
  readonly branch?: string
}

/** Branch keys, or the map or list attribute that holds them (beside `default`). */
type Branches = readonly string[] | { readonly dynamic: string }

/** What is known about a type. */
export interface NodeMetadata {
  readonly type: string
  readonly category: Category
  readonly effects: Effects
  readonly aliases: readonly string[]
  readonly inputSchema?: Schema
  readonly branches?: Branches
  /** Limit of one attempt. */
  readonly timeoutMs?: number
  /** Attributes that are text conditions. */
  readonly conditions?: readonly string[]
}

export interface NodeExecutor {
  readonly type: string
  readonly inputSchema: Schema
  readonly outputSchema?: Schema
  readonly effects: Effects
  readonly branches?: Branches
  readonly timeoutMs?: number
  readonly conditions?: readonly string[]
  /** @throws NodeError */
  execute(context: NodeContext): Promise<NodeResult>
}

export interface NodeRegistry {
  /** Types with an executor. */
  types(): string[]
  has(type: string): boolean
  executor(type: string): NodeExecutor | undefined
  /** Of any known type, with or without executor. */
  metadata(type: string): NodeMetadata | undefined
  readonly network?: NetworkOptions
}

interface RegistryOptions extends NetworkOptions {
  readonly executors?: readonly NodeExecutor[]
  /** Brings the eight `orch_*` types and `code`. */
  readonly orchestrator?: OrchestratorClient
  /** Brings `code`. */
  readonly codeRunner?: CodeRunner
}

const BUILT_IN: readonly NodeExecutor[] = [
  ifNode,
  switchNode,
  delayNode,
  joinNode,
  loopNode,
  transformNode,
  setNode,
  mergeNode,
  filterNode,
  sortNode,
  aggregateNode,
  splitNode,
  webhookResponseNode,
  chatANode,
  chatBNode,
  chatCNode,
  emailNode,
  httpNode,
  aiNode,
  vectordbNode,
]

const schemaOf = (type: string): Pick<NodeMetadata, 'inputSchema'> => {
  const inputSchema = SCHEMAS_WITHOUT_EXECUTOR[type]
  return inputSchema ? { inputSchema } : {}
}

/**
 * Executors by type. Contract: runbook.md 11.
 * @throws Error when a custom executor takes the name or an alias of a built-in type
 */
export function createNodeRegistry(options: RegistryOptions = {}): NodeRegistry {
  const { executors = [], orchestrator, codeRunner = orchestrator, ...network } = options
  const given = [
    ...(codeRunner ? [codeNode(codeRunner)] : []),
    ...(orchestrator ? orchestratorNodes(orchestrator) : []),
  ]
  const table = new Map([...BUILT_IN, ...given].map((executor) => [executor.type, executor]))
  for (const executor of executors) {
    if (builtInType(executor.type)) throw new Error(`node type "${executor.type}" is built in`)
    table.set(executor.type, executor)
  }
  const known = new Map(BUILT_IN_TYPES.map((type) => [type.type, type]))
  return {
    network,
    types: () => [...table.keys()],
    has: (type) => table.has(type),
    executor: (type) => table.get(type),
    metadata: (type) => {
      const builtIn = known.get(type)
      const executor = table.get(type)
      if (!executor) return builtIn && { ...builtIn, ...schemaOf(type) }
      return { category: 'action', aliases: [], ...builtIn, ...executor }
    },
  }
}
