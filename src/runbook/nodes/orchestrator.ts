import { NodeError } from '../errors.ts'
import { fromJson, parseJson } from '../hcl/json.ts'
import { compareText, isMap, toText, type Value, type ValueMap } from '../hcl/values.ts'
import { builtInType } from '../node-types.ts'
import type { OrchestratorClient, Target } from '../ports.ts'
import type { NodeExecutor } from '../registry.ts'
import { clientError } from './client-error.ts'
import { atPath } from './items.ts'
import { optionalText, present, text } from './settings.ts'
import { SCHEMAS_WITHOUT_EXECUTOR } from './without-executor.ts'

type Operation = (client: OrchestratorClient, target: Target, config: ValueMap, signal: AbortSignal) => Promise<object>

/** Contract: runbook.md 6.9. */
const OPERATIONS: Readonly<Record<string, Operation>> = {
  orch_get: async (client, target, _config, signal) => ({ object: await client.get(target, signal) }),
  orch_list: async (client, target, config, signal) => {
    const limit = Number(config.limit)
    const { items, truncated = false } = await client.list({ ...target, ...selectors(config), limit }, signal)
    const list = items.map((item) => fromJson(item)).sort(byNamespaceAndName)
    return {
      list: list.slice(0, limit),
      count: Math.min(list.length, limit),
      truncated: truncated || list.length > limit,
    }
  },
  orch_logs: async (client, { kind: _kind, name: _name, ...target }, config, signal) => {
    const pod = text(config, 'podName')
    const container = optionalText(config, 'container')
    const bounds = present({ container, tailLines: config.tailLines, sinceSeconds: config.sinceSeconds })
    const answer = await client.logs({ ...target, pod, ...bounds }, signal)
    return {
      logs: answer.logs,
      container: answer.container ?? container ?? null,
      pod,
      truncated: answer.truncated ?? false,
    }
  },
  orch_events: async (client, target, config, signal) => {
    if ((config.kind === undefined) !== (config.name === undefined)) {
      throw new NodeError('config_invalid', '"kind" and "name" belong together')
    }
    const events = (await client.events(target, signal)).map((event) => fromJson(event))
    const items = events.sort((a, b) => compareText(timeOf(a), timeOf(b)))
    return { items, count: items.length }
  },
  orch_restart: async (client, target, _config, signal) => {
    await client.restart(target, signal)
    return done(target, 'restarted')
  },
  orch_scale: async (client, target, config, signal) => {
    const replicas = Number(config.replicas)
    await client.scale({ ...target, replicas }, signal)
    return { ...done(target, `scaled to ${replicas}`), replicas }
  },
  orch_patch: async (client, target, config, signal) => {
    const object = await client.patch(
      { ...target, patch: patchOf(config), patchType: text(config, 'patchType') },
      signal,
    )
    return { ...done(target, 'patched'), object }
  },
  orch_delete: async (client, target, config, signal) => {
    await client.delete({ ...target, ...present({ gracePeriodSeconds: config.gracePeriodSeconds }) }, signal)
    return done(target, 'deleted')
  },
}

/** The eight types that need a client. */
export const orchestratorNodes = (client: OrchestratorClient): NodeExecutor[] =>
  Object.entries(OPERATIONS).map(([type, operation]) => ({
    type,
    effects: builtInType(type)?.effects ?? 'external',
    timeoutMs: 30_000,
    inputSchema: SCHEMAS_WITHOUT_EXECUTOR[type] ?? {},
    execute: async ({ config, signal }) => {
      try {
        return { output: fromJson(await operation(client, targetOf(config), config, signal)) }
      } catch (error) {
        signal.throwIfAborted()
        throw clientError(type, error)
      }
    },
  }))

const targetOf = (config: ValueMap): Target => ({
  clusterId: text(config, 'clusterId'),
  kind: text(config, 'kind'),
  name: text(config, 'name'),
  ...present({ namespace: config.namespace, apiVersion: config.apiVersion }),
})

const selectors = (config: ValueMap): object =>
  present({ labelSelector: config.labelSelector, fieldSelector: config.fieldSelector })

const done = ({ kind, name }: Target, what: string): object => ({
  success: true,
  message: `${kind} ${name} ${what}`,
  name,
  kind,
})

function patchOf({ patch = null }: ValueMap): Value {
  if (typeof patch !== 'string') return patch
  try {
    return parseJson(patch)
  } catch {
    throw new NodeError('config_invalid', '"patch" is text, but no JSON')
  }
}

const textAt = (value: Value, path: string): string => toText(atPath(value, path)) ?? ''

const byNamespaceAndName = (a: Value, b: Value): number =>
  compareText(textAt(a, 'metadata.namespace'), textAt(b, 'metadata.namespace')) ||
  compareText(textAt(a, 'metadata.name'), textAt(b, 'metadata.name'))

const TIMES = ['lastTimestamp', 'eventTime', 'firstTimestamp', 'metadata.creationTimestamp']

const timeOf = (event: Value): string =>
  isMap(event) ? (TIMES.map((path) => textAt(event, path)).find((time) => time !== '') ?? '') : ''
