import { errorText } from '../../base/errors.ts'
import { NodeError } from '../errors.ts'
import { isStream } from '../graph.ts'
import { Budget, LIMITS } from '../hcl/budget.ts'
import { KnownAfterRun, LimitError } from '../hcl/errors.ts'
import { evaluate } from '../hcl/evaluate.ts'
import { textsIn } from '../hcl/functions/conversion.ts'
import { fromJson } from '../hcl/json.ts'
import { isList, isMap, newMap, toText, type Value, type ValueMap } from '../hcl/values.ts'
import type { WorkflowNode } from '../model.ts'
import type { NodeContext, NodeMetadata, NodeResult } from '../registry.ts'
import { branchOf } from '../nodes/branch.ts'
import { builtInType } from '../node-types.ts'
import { attempt } from './attempts.ts'
import { evaluateCondition } from './condition.ts'
import { evaluateConfig, shownConfig, type NodeConfig } from './config.ts'
import type { LoopItems } from './loop.ts'
import type { Pass } from './pass.ts'
import { nodePath } from './record.ts'
import { durationMs, retryPolicy } from './retry.ts'
import type { Runner } from './runner.ts'
import type { NodeScope } from './node-scope.ts'
import type { RunValues } from './scope.ts'
import { checkPayload, triggerValues } from './trigger.ts'
import { UNKNOWN, type NodeState, type Output } from './state.ts'

export interface NodeOutcome {
  readonly state: Pick<NodeState, 'status' | 'output' | 'branch' | 'mocked' | 'config'> &
    Partial<Pick<NodeState, 'attempts'>>
  readonly config: ValueMap
}

/** Everything about one node while it runs. */
interface Running {
  readonly runner: Runner
  readonly pass: Pass
  readonly node: WorkflowNode
  readonly scope: NodeScope
  readonly prev: Output
  readonly signal: AbortSignal
}

/** The steps of runbook.md 4.2 from `when` to the output. @throws NodeError, EvaluationError, AttemptsFailed */
export async function executeNode(
  runner: Runner,
  pass: Pass,
  node: WorkflowNode,
  prev: Output,
  signal: AbortSignal,
): Promise<NodeOutcome> {
  const { registry, mocks = {} } = runner.options
  const scope = runner.scope(pass.frame, node.index, prev)
  const running: Running = { runner, pass, node, scope, prev, signal }
  if (node.when && !isWanted(node.when, scope)) return { state: { status: 'skipped', output: null }, config: newMap() }
  const metadata = registry.metadata(node.type)
  if (Object.hasOwn(mocks, node.id)) return mocked(node, fromJson(mocks[node.id]), metadata?.branches !== undefined)
  if (metadata?.category === 'trigger') return trigger(running, metadata)
  const executor = registry.executor(node.type)
  if (!executor || !metadata) throw new NodeError('no_executor', `no executor registered for step type "${node.type}"`)
  const config = evaluateConfig(node, metadata, scope)
  for (const [name, { sensitive }] of Object.entries(metadata.inputSchema?.properties ?? {})) {
    if (sensitive) for (const text of textsIn(config.values[name] ?? null)) runner.values.masking.add(text)
  }
  if (runner.options.dryRun && isUnknown(metadata, config, prev)) return simulate(running, config)
  if (metadata.effects === 'external') runner.options.journal?.started(nodePath(pass.frame, node.id))
  const timeoutMs = timeLimit(node, metadata, scope)
  const { result, attempts } = await attempt(
    (number, inner) => executor.execute(context(running, config, number, inner, timeoutMs)),
    {
      policy: retryPolicy(node, scope),
      timeoutMs,
      signal,
      clock: runner.clock,
      masking: runner.values.masking,
      seed: `${runner.values.run.id}/${nodePath(pass.frame, node.id)}`,
      onRetry: (number, delayMs, error) => {
        const message = runner.values.masking.text(error.message)
        runner.emit('node.retry', pass.frame, node, { attempt: number, delayMs, error: { code: error.code, message } })
      },
    },
  )
  const state = await withBody(running, config, { ...result, output: checkedOutput(node, result.output) })
  const shown = runner.options.dryRun ? { config: shownConfig(config) } : {}
  return { state: { ...state, ...shown, attempts }, config: config.values }
}

const OUTPUT_LIMITS = { ...LIMITS, resultBytes: 64 * 1024 * 1024 }

/** An output within the bound of runbook.md 13; that of a custom executor without prototypes. */
function checkedOutput({ id, type }: WorkflowNode, output: Value): Value {
  const value = builtInType(type) ? output : fromJson(output)
  try {
    new Budget(OUTPUT_LIMITS).checkSize(value)
  } catch (error) {
    if (!(error instanceof LimitError)) throw error
    throw new NodeError('limit_exceeded', `output of "${id}": ${error.message}`)
  }
  return value
}

/** In a dry run, what isn't known yet is taken for true. */
function isWanted(when: NonNullable<WorkflowNode['when']>, scope: NodeScope): boolean {
  try {
    return evaluateCondition(when, scope)
  } catch (error) {
    if (error instanceof KnownAfterRun) return true
    throw error
  }
}

function mocked({ type, id }: WorkflowNode, output: Value, branches: boolean): NodeOutcome {
  const branch = branches ? branchOf(output) : undefined
  if (branches && branch === undefined)
    throw new NodeError('config_invalid', `the mock of ${type} "${id}" tells no branch: give it a key "branch"`)
  const state = { status: 'succeeded', output, mocked: true, ...(branch !== undefined && { branch }) } as const
  return { state, config: newMap() }
}

/** Emits the payload; what a dry run does needs nobody's confirmation. Contract: runbook.md 4.7. */
async function trigger({ runner, node, scope, signal }: Running, metadata: NodeMetadata): Promise<NodeOutcome> {
  const { confirmation, inputs } = evaluateConfig(node, metadata, scope).values
  const { confirm, dryRun, triggerData } = runner.options
  if (confirmation === true && !dryRun && !(await unlessCancelled(confirm?.(node.id, signal), signal))) {
    throw new NodeError('refused', `manual "${node.id}" was not confirmed`)
  }
  const { payload } = triggerValues(triggerData)
  return { state: { status: 'succeeded', output: checkPayload(payload, inputs) }, config: newMap() }
}

/** Nobody may be there to answer. @throws NodeError cancelled */
function unlessCancelled<T>(answer: Promise<T> | undefined, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const cancel = (): void => reject(new NodeError('cancelled', 'the node was cancelled'))
    if (signal.aborted) cancel()
    signal.addEventListener('abort', cancel, { once: true })
    Promise.resolve(answer).then(resolve, reject)
  })
}

function isUnknown({ effects, type }: NodeMetadata, { unknown }: NodeConfig, prev: Output): boolean {
  const usesPrev = type === 'join' || type === 'split' || !builtInType(type)
  return effects !== 'none' || unknown.length > 0 || (prev === UNKNOWN && usesPrev)
}

/** A node that a dry run doesn't execute; a body behind it runs once, for an unknown item. */
async function simulate({ runner, pass, node, signal }: Running, config: NodeConfig): Promise<NodeOutcome> {
  const state: NodeOutcome['state'] = { status: 'simulated', output: UNKNOWN, config: shownConfig(config) }
  if (!runner.graph.bodies.has(node.index)) return { state, config: config.values }
  await runner.loop(pass, node, { items: [UNKNOWN], concurrency: 1, keepGoing: false }, signal)
  return { state, config: config.values }
}

function timeLimit({ timeout, id }: WorkflowNode, { timeoutMs }: NodeMetadata, scope: NodeScope): number | undefined {
  if (!timeout) return timeoutMs
  const limit = durationMs(evaluate(timeout, scope))
  if (!limit) throw new NodeError('config_invalid', `timeout of "${id}" is no duration above 0`)
  return limit
}

function context(
  { runner, pass, node, prev }: Running,
  { values, perItem }: NodeConfig,
  number: number,
  signal: AbortSignal,
  timeoutMs: number | undefined,
): NodeContext {
  const { options, graph } = runner
  const { id, startedAt } = runner.values.run
  return {
    id: node.id,
    config: values,
    perItem,
    source: (name) => sourceText(node, name),
    prev: prev === UNKNOWN ? null : prev,
    attempt: number,
    signal,
    timeoutMs,
    dryRun: options.dryRun === true,
    run: { id, workflow: graph.workflow.name, startedAt },
    log: (message) => runner.emit('node.log', pass.frame, node, { message: runner.values.masking.text(message) }),
    http: (url, request = {}) => runner.outbound.request(url, request, signal),
    connect: (host, port) => runner.outbound.connect(host, port, signal),
    readFile: (path) => readFile(runner.values.files, path),
    services: options.services ?? {},
  }
}

function readFile(files: RunValues['files'], path: string): Buffer {
  try {
    return files.readFile(path)
  } catch (error) {
    throw new NodeError('config_invalid', errorText(error))
  }
}

/** An attribute as written; a quoted string without its quotes. */
function sourceText({ attributes }: WorkflowNode, name: string): string {
  const value = attributes.get(name)?.value
  if (!value) return ''
  const { text } = value.range
  return value.kind === 'template' && text.startsWith('"') ? text.slice(1, -1) : text
}

/** Runs the body that a loop or a stream join opens. */
async function withBody(
  { runner, pass, node, signal }: Running,
  { values }: NodeConfig,
  { output, branch }: NodeResult,
): Promise<NodeOutcome['state']> {
  if (!runner.graph.bodies.has(node.index) || !isList(output)) {
    return { status: 'succeeded', output, ...(branch !== undefined && { branch }) }
  }
  const items = isStream(node) ? { items: output, concurrency: 1, keepGoing: false } : loopItems(output, values)
  return { status: 'succeeded', output: await runner.loop(pass, node, items, signal) }
}

function loopItems(items: readonly Value[], config: ValueMap): LoopItems {
  const isKeyed =
    isMap(config.items ?? null) || (typeof config.items === 'string' && config.items.trimStart().startsWith('{'))
  return {
    items,
    ...(isKeyed && { keys: items.map((item) => (isMap(item) ? (toText(item.key ?? null) ?? '') : '')) }),
    concurrency: Number(config.concurrency ?? 1),
    keepGoing: config.onItemError === 'continue',
    itemVariable: toText(config.itemVar ?? null) ?? 'item',
    indexVariable: toText(config.indexVar ?? null) ?? 'index',
  }
}
