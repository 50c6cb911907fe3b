import { MemoryApiError, MemoryNetworkError, MemoryRequestError } from '../../../client/errors.ts'
import { MemoryClient } from '../../../client/memory-client.ts'
import type { RecallMode, Tags } from '../../../client/types.ts'
import { NodeError } from '../../errors.ts'
import { fromJson } from '../../hcl/json.ts'
import { isMap, type Value, type ValueMap } from '../../hcl/values.ts'
import type { NodeContext, NodeResult } from '../../registry.ts'
import { asText, items, map, optionalText, text } from '../settings.ts'

/** `search` recalls, `insert` imprints, `upsert` updates or imprints, `delete` forgets. Contract: runbook.md 6.6. */
export async function useMemory(context: NodeContext): Promise<NodeResult> {
  const { config, services } = context
  const workspace = optionalText(config, 'workspace') ?? services.memory?.workspace
  if (workspace === undefined) throw new NodeError('config_invalid', '"workspace" is required for mem')
  const operation = OPERATIONS[text(config, 'operation')] ?? search
  try {
    return { output: fromJson(await operation(clientOf(context), workspace, config)) }
  } catch (error) {
    throw memoryError(error)
  }
}

type Operation = (client: MemoryClient, workspace: string, config: ValueMap) => Promise<object>

const search: Operation = async (client, workspace, config) => {
  const query = optionalText(config, 'query') ?? optionalText(config, 'text')
  if (query === undefined) throw new NodeError('config_invalid', '"query" is required for a search')
  const tags = tagsOf(config)
  const filters = {
    ...(tags && { tags }),
    ...(config.collection !== undefined && { collection_id: text(config, 'collection') }),
  }
  const mode = RECALL_MODES.find((name) => name === config.mode)
  const { results } = await client.recall(workspace, { query, k: Number(config.topK), filters, ...(mode && { mode }) })
  const found = results.map((hit) => ({
    id: hit.memory_id,
    text: hit.text,
    score: hit.score,
    tags: hit.tags ?? {},
    watermark: hit.watermark,
  }))
  return { results: found, count: found.length }
}

const insert: Operation = async (client, workspace, config) => {
  const ids: string[] = []
  for (const row of rows(config)) ids.push(await imprint(client, workspace, config, row))
  return { success: true, inserted: ids.length, updated: 0, count: ids.length, ids }
}

/** Replaces the content of `memoryId` under its watermark. */
const upsert: Operation = async (client, workspace, config) => {
  const memoryId = optionalText(config, 'memoryId')
  if (memoryId === undefined) return insert(client, workspace, config)
  const [row, ...more] = rows(config)
  if (!row || more.length > 0) throw new NodeError('config_invalid', 'an update takes one row')
  const { head_watermark: watermark } = await client.lookup(workspace, memoryId)
  await client.update(workspace, memoryId, { content: contentOf(config, row), tags: tagsOf(config) }, watermark)
  return { success: true, inserted: 0, updated: 1, count: 1, ids: [memoryId] }
}

const forget: Operation = async (client, workspace, config) => {
  const filter = map(config, 'deleteFilter')
  const ids = items(filter, 'id').map(asText)
  const id = optionalText(config, 'memoryId') ?? optionalText(filter, 'id')
  const all = id === undefined ? ids : [id]
  if (all.length === 0) throw new NodeError('config_invalid', 'give "memoryId", or ids in "deleteFilter"')
  for (const memoryId of all) await client.forget(workspace, memoryId)
  return { success: true, deleted: all.length }
}

const OPERATIONS: Readonly<Record<string, Operation>> = { search, insert, upsert, delete: forget }
const RECALL_MODES: readonly RecallMode[] = ['hybrid', 'vector', 'keyword']

async function imprint(client: MemoryClient, workspace: string, config: ValueMap, row: ValueMap): Promise<string> {
  const result = await client.imprint(workspace, {
    content: contentOf(config, row),
    tags: tagsOf(config),
    collection_id: optionalText(config, 'collection'),
  })
  return result.memory_id
}

function rows(config: ValueMap): ValueMap[] {
  const { data = null } = config
  const given = isMap(data) ? [data] : items(config, 'data').filter(isMap)
  if (given.length === 0) throw new NodeError('config_invalid', '"data" is required to write')
  return given
}

function contentOf(config: ValueMap, row: ValueMap): string {
  const content = optionalText(row, text(config, 'textColumn'))
  if (content === undefined) throw new NodeError('data_invalid', `a row has no text "${text(config, 'textColumn')}"`)
  return content
}

function tagsOf(config: ValueMap): Tags | undefined {
  if (config.tags === undefined) return undefined
  return Object.fromEntries(
    Object.entries(map(config, 'tags')).map(([key, value]: [string, Value]) => [key, asText(value)]),
  )
}

/** The service's client over connections that are checked. */
function clientOf(context: NodeContext): MemoryClient {
  const { config, services } = context
  const endpoint = optionalText(config, 'endpoint') ?? services.memory?.endpoint
  if (endpoint === undefined) throw new NodeError('config_invalid', '"endpoint" is required for mem')
  // a configured key is for the configured endpoint
  const ownKey = config.endpoint === undefined ? services.memory?.apiKey : undefined
  const agentId = optionalText(config, 'agentId') ?? services.memory?.agentId
  return new MemoryClient(endpoint, optionalText(config, 'apiKey') ?? ownKey, {
    ...(agentId !== undefined && { agentId }),
    fetch: async (input, init = {}) => {
      const request = new Request(input, init)
      const body = Buffer.from(await request.arrayBuffer())
      const {
        status,
        headers,
        body: answer,
      } = await context.http(request.url, {
        method: request.method,
        headers: Object.fromEntries(request.headers),
        ...(body.length > 0 && { body }),
        maxRedirects: 0,
      })
      return new Response(answer.length > 0 ? new Uint8Array(answer) : null, { status, headers })
    },
  })
}

const CODES: Readonly<Record<number, 'auth_failed' | 'not_found' | 'rate_limited'>> = {
  401: 'auth_failed',
  403: 'auth_failed',
  404: 'not_found',
  429: 'rate_limited',
}

function memoryError(error: unknown): unknown {
  if (error instanceof MemoryApiError) {
    return new NodeError(CODES[error.status] ?? 'http_status', `the memory service answers: ${error.message}`, {
      statusCode: error.status,
    })
  }
  if (error instanceof MemoryRequestError) return new NodeError('config_invalid', error.message)
  if (error instanceof MemoryNetworkError && error.cause instanceof NodeError) return error.cause
  return error instanceof MemoryNetworkError ? new NodeError('network_error', error.message) : error
}
