import * as z from 'zod'
import { canonicalJson } from '../base/canonical-json.ts'
import { isMap } from '../base/json.ts'
import { CHUNKERS } from './chunker/config.ts'
import { CLIENT_EDGE_TYPES, EDGE_TYPES, RECALL_MODES } from './model.ts'

/**
 * What callers send: memory.md 1.1 (limits), 3 and 4.1. Unknown keys are refused at every depth but in free objects. Where a
 * check is our own, `meta` says the same in JSON Schema, for the document of the API.
 */

/** Lengths are in characters: code points, not UTF-16 units. */
const characters = (max: number): z.ZodString =>
  z
    .string()
    .refine((text) => text.length <= max || [...text].length <= max, `is longer than ${max} characters`)
    .meta({ maxLength: max })

const name = characters(200)
const label = characters(200)
export const agentIdSchema = characters(200)
  .min(1, 'must not be empty')
  .refine((id) => !/[\p{Cc}\p{Cs}\ufffd]/u.test(id), 'must be printable')

/** An object used as a map. z.record would lose the key `__proto__`, which a tag or a free object may have. */
const mapOf = <V>(value: z.ZodType<V>, key: z.ZodType<string> = z.string()) =>
  z
    .custom<Record<string, V>>(isMap, 'must be an object')
    .superRefine((map, context) => {
      for (const [entry, item] of Object.entries(map)) {
        const issues = key.safeParse(entry).error?.issues ?? value.safeParse(item).error?.issues ?? []
        for (const issue of issues) context.addIssue({ ...issue, path: [entry, ...issue.path] })
      }
    })
    .meta({
      type: 'object',
      // Only who reads the document waits for these.
      get propertyNames() {
        return jsonSchema(key)
      },
      get additionalProperties() {
        return jsonSchema(value)
      },
    })

function jsonSchema(schema: z.ZodType): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema)
  return rest
}

const JSON_MAX_BYTES = 64 * 1024
const smallMapOf = <V>(value: z.ZodType<V>) =>
  mapOf(value)
    .refine((map) => Buffer.byteLength(JSON.stringify(map)) <= JSON_MAX_BYTES, 'is larger than 64 KiB of JSON')
    .describe('At most 64 KiB of JSON')
const freeObject = smallMapOf(z.unknown())

export const tagKeySchema = characters(128).min(1, 'must not be an empty key')
export const tagValueSchema = characters(4096)
const tags = mapOf(tagValueSchema, tagKeySchema)
  .refine((value) => Object.keys(value).length <= 256, 'has more than 256 entries')
  .meta({ maxProperties: 256 })

/** The error for another one names them all. */
export const chunkerId = z
  .string()
  .refine((id) => CHUNKERS.some((known) => known === id), `must be one of ${CHUNKERS.join(', ')}`)
  .meta({ enum: [...CHUNKERS] })

const workspaceFields = {
  name: name.min(1, 'must not be empty'),
  region: characters(64).optional(),
  chunker_id: chunkerId.optional(),
  embedding_model: name.optional(),
  meta: freeObject.optional(),
  auto_link_enabled: z.boolean().optional(),
  auto_link_threshold: z
    .number()
    .gt(0, 'must be above 0')
    .transform((value) => Math.min(value, 1))
    .optional(),
  auto_link_max_edges: z
    .number()
    .refine((value) => Number.isInteger(value) && value >= 1, 'must be an integer of at least 1')
    .meta({ type: 'integer', minimum: 1 })
    .transform((value) => Math.min(value, 50))
    .optional(),
  auto_link_max_incoming_per_day: z.int().min(0, 'must be 0 or more').optional(),
}
export const workspaceRequest = z.strictObject(workspaceFields)
export type WorkspaceRequest = z.infer<typeof workspaceRequest>

export const collectionRequest = z.strictObject({ name: name.min(1, 'must not be empty') })
export type CollectionRequest = z.infer<typeof collectionRequest>

/** A reference in a body: the wrong prefix is a bad request, an unknown id is absent (memory.md 2.5). */
const reference = (prefix: string) => z.string().startsWith(prefix, `must be an id that starts with ${prefix}`)
const memoryReference = reference('mem_')

export const imprintRequest = z.strictObject({
  content: z.string(),
  collection_id: reference('coll_').optional(),
  tags: tags.optional(),
  chunker_id: chunkerId.optional(),
  chunker_config: smallMapOf(z.string()).optional(),
  auto_link: z.boolean().optional(),
})
export type ImprintRequest = z.infer<typeof imprintRequest>

const watermark = z.string().min(1, 'must not be empty')

export const updateRequest = z.strictObject({
  content: z.string(),
  tags: tags.optional(),
  expected_watermark: watermark.optional(),
})
export type UpdateRequest = z.infer<typeof updateRequest>

export const patchRequest = z.strictObject({
  patch: z.array(
    z.strictObject({ old_string: z.string(), new_string: z.string(), replace_all: z.boolean().optional() }),
  ),
  expected_watermark: watermark.optional(),
})
export type PatchRequest = z.infer<typeof patchRequest>

export const appendRequest = z.strictObject({
  content: z.string().min(1, 'must not be empty'),
  expected_watermark: watermark.optional(),
})
export type AppendRequest = z.infer<typeof appendRequest>

export const tagRequest = z.strictObject({ value: tagValueSchema })

/** `type` for `edge_type` and `properties` for `properties_json`; both given and different is refused. */
const edgeFields = {
  target_memory_id: memoryReference,
  edge_type: z.string().optional(),
  type: z.string().optional(),
  properties_json: freeObject.optional(),
  properties: freeObject.optional(),
}

interface EdgeAliases {
  edge_type?: string | undefined
  type?: string | undefined
  properties_json?: Record<string, unknown> | undefined
  properties?: Record<string, unknown> | undefined
}

function resolveAliases(
  value: EdgeAliases,
  context: z.RefinementCtx,
): { edge_type: string; properties_json?: Record<string, unknown> } {
  const refuse = (field: string, message: string): never => {
    context.addIssue({ code: 'custom', path: [field], message })
    return z.NEVER
  }
  const { edge_type, type, properties_json, properties } = value
  if (edge_type !== undefined && type !== undefined && edge_type !== type) {
    return refuse('type', 'differs from edge_type, which it is another name for')
  }
  if (properties_json && properties && canonicalJson(properties_json) !== canonicalJson(properties)) {
    return refuse('properties', 'differs from properties_json, which it is another name for')
  }
  const resolvedType = edge_type ?? type
  const resolvedProperties = properties_json ?? properties
  if (resolvedType === undefined) return refuse('edge_type', 'is required')
  return { edge_type: resolvedType, ...(resolvedProperties && { properties_json: resolvedProperties }) }
}

export const linkRequest = z.strictObject(edgeFields).transform((value, context) => ({
  target_memory_id: value.target_memory_id,
  ...resolveAliases(value, context),
}))

export const batchRowRequest = z
  .strictObject({ source_memory_id: memoryReference, ...edgeFields })
  .transform((value, context) => ({
    source_memory_id: value.source_memory_id,
    target_memory_id: value.target_memory_id,
    ...resolveAliases(value, context),
  }))
export const batchRequest = z.strictObject({ edges: z.array(batchRowRequest) })
export type BatchRequest = z.infer<typeof batchRequest>

export const clientEdgeType = z.enum(CLIENT_EDGE_TYPES)
export const directionSchema = z.enum(['out', 'in', 'both'])
export type Direction = z.infer<typeof directionSchema>

const edgeTypes = z.array(z.enum(EDGE_TYPES))
/** A string, a comma list or an array. */
const typeList = z
  .union([z.string(), z.array(z.string())])
  .transform((value) => (typeof value === 'string' ? value.split(',') : value).map((type) => type.trim()))
  .pipe(edgeTypes)

const uniteTypes = (a?: readonly string[], b?: readonly string[]): string[] | undefined => {
  const all = [...new Set([...(a ?? []), ...(b ?? [])])]
  return all.length > 0 ? all : undefined
}

export const neighborsRequest = z
  .strictObject({
    memory_id: memoryReference,
    direction: directionSchema.default('both'),
    edge_types: edgeTypes.optional(),
    type: typeList.optional(),
    k: z.int().optional(),
  })
  .transform(({ edge_types, type, ...rest }) => ({ ...rest, types: uniteTypes(edge_types, type) }))
export type NeighborsRequest = z.infer<typeof neighborsRequest>

export const traverseRequest = z
  .strictObject({
    seed_memory_id: memoryReference,
    depth: z.int().default(1),
    direction: directionSchema.default('out'),
    edge_types: edgeTypes.optional(),
    type: typeList.optional(),
    filter: z.strictObject({ agent_id: agentIdSchema.optional(), tags: tags.optional() }).optional(),
  })
  .transform(({ edge_types, type, ...rest }) => ({ ...rest, types: uniteTypes(edge_types, type) }))
export type TraverseRequest = z.infer<typeof traverseRequest>

export const recallMode = z.enum(RECALL_MODES)
const query = characters(32 * 1024)

const filters = z.strictObject({
  collection_id: reference('coll_').optional(),
  tags: mapOf(z.union([tagValueSchema, z.array(tagValueSchema)]), tagKeySchema).optional(),
  ts_after: z.string().optional(),
  ts_before: z.string().optional(),
  agent_id: z.string().optional(),
  agent_id_in: z.array(z.string()).optional(),
  agent_id_not_in: z.array(z.string()).optional(),
})
export type RecallFilters = z.infer<typeof filters>

/** Beyond 1e30 more weight changes nothing, and scores would pass what a number holds. */
const weight = z
  .number()
  .min(0, 'must not be negative')
  .transform((value) => Math.min(value, 1e30))

export const recallRequest = z.strictObject({
  query: query.default(''),
  mode: recallMode.default('hybrid'),
  k: z.int().optional(),
  filters: filters.optional(),
  weights: z.strictObject({ vector: weight, keyword: weight }).partial().optional(),
  include_cells: z.boolean().default(false),
  memory_ids: z.array(memoryReference).min(1, 'must name at least one id').max(100, 'has more than 100 ids').optional(),
  graph_expansion: z
    .strictObject({
      depth: z.int().min(0, 'must be 0 or more'),
      edge_types: edgeTypes.optional(),
      direction: directionSchema.default('out'),
      weight: weight.default(0.2),
      max_neighbors: z.int().min(0, 'must be 0 or more').max(200, 'must be at most 200').default(10),
      include_neighbors_in_response: z.boolean().default(true),
    })
    .optional(),
})
export type RecallRequest = z.infer<typeof recallRequest>

export const pinRequest = z.strictObject({
  query: query.min(1, 'must not be empty'),
  mode: recallMode.default('hybrid'),
  k: z.int().min(1, 'must be 1 to 100').max(100, 'must be 1 to 100').default(10),
  watermark: label.optional(),
  label: label.optional(),
})
export type PinRequest = z.infer<typeof pinRequest>

export const agentRequest = z.strictObject({
  agent_id: agentIdSchema.startsWith('agent_', 'must start with agent_'),
  identity_provider: z.string().min(1, 'must not be empty'),
  display_name: name.optional(),
  identity_proof: mapOf(z.unknown()).optional(),
  agent_type: label.optional(),
  model: label.optional(),
  capabilities: freeObject.optional(),
})
export type AgentRequest = z.infer<typeof agentRequest>
