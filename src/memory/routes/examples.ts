type Json = Record<string, unknown>

const TIME = '2026-01-02T03:04:05.678Z'
const MD5 = '9e107d9d372bb6826bd81d3542a419d6'
const SHA = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

/** What a field of this name holds in examples; an optional field that is not here is left out. */
const VALUES: Readonly<Record<string, unknown>> = {
  ws: 'ws_01KAJ3V5S0Q8T7R6P5N4M3K2J0',
  workspace_id: 'ws_01KAJ3V5S0Q8T7R6P5N4M3K2J0',
  memory_id: 'mem_01KAJ3V5S0Q8T7R6P5N4M3K2J1',
  source_memory_id: 'mem_01KAJ3V5S0Q8T7R6P5N4M3K2J1',
  target_memory_id: 'mem_01KAJ3V5S0Q8T7R6P5N4M3K2J2',
  from_memory_id: 'mem_01KAJ3V5S0Q8T7R6P5N4M3K2J2',
  target_id: 'mem_01KAJ3V5S0Q8T7R6P5N4M3K2J1',
  target: 'mem_01KAJ3V5S0Q8T7R6P5N4M3K2J1',
  watermark: 'wmk_01KAJ3V5S0Q8T7R6P5N4M3K2J3',
  head_watermark: 'wmk_01KAJ3V5S0Q8T7R6P5N4M3K2J3',
  created_watermark: 'wmk_01KAJ3V5S0Q8T7R6P5N4M3K2J3',
  current_watermark: 'wmk_01KAJ3V5S0Q8T7R6P5N4M3K2J3',
  watermark_after: 'wmk_01KAJ3V5S0Q8T7R6P5N4M3K2J3',
  edge_id: 'edg_01KAJ3V5S0Q8T7R6P5N4M3K2J4',
  via_edge_id: 'edg_01KAJ3V5S0Q8T7R6P5N4M3K2J4',
  edge_type: 'references',
  via_edge_type: 'references',
  pin_id: 'pin_01KAJ3V5S0Q8T7R6P5N4M3K2J5',
  cell_id: 'cell_01KAJ3V5S0Q8T7R6P5N4M3K2J6',
  ledger_id: 'lg_01KAJ3V5S0Q8T7R6P5N4M3K2J7',
  request_id: 'req_01KAJ3V5S0Q8T7R6P5N4M3K2J8',
  agent_id: 'agent_keeper',
  written_by_agent_id: 'agent_keeper',
  last_modified_by_agent_id: 'agent_keeper',
  created_by_agent_id: 'agent_keeper',
  key: 'kind',
  name: 'Lighthouse',
  content: 'The lamp is lit at dusk.',
  text: 'The lamp is lit at dusk.',
  query: 'When is the lamp lit?',
  tags: { kind: 'rule' },
  content_md5: MD5,
  content_md5_after: MD5,
  text_md5: MD5,
  prev_hash: SHA,
  entry_hash: SHA,
  created_at: TIME,
  updated_at: TIME,
  registered_at: TIME,
  last_seen_at: TIME,
  ts: TIME,
  embedding_model: 'hash:default',
  identity_provider: 'opaque',
  edge_count_by_type: { references: 1 },
  auto_link_threshold: 0.7,
  auto_link_max_edges: 10,
  auto_link_max_incoming_per_day: 100,
  latency_ms: 4.321,
  score: 0.912,
  vector_score: 0.73,
  keyword_score: 4.21,
  failed: 0,
  index: 0,
  k: 10,
  mode: 'hybrid',
  seq: 1,
  primary: 'ok',
  vector: 'ok',
  ledger: 'ok',
  version: '1.0.0',
}

/** What `id` is in the records. */
const IDS: Readonly<Record<string, string>> = {
  Workspace: 'ws_01KAJ3V5S0Q8T7R6P5N4M3K2J0',
  Collection: 'coll_01KAJ3V5S0Q8T7R6P5N4M3K2J9',
}
const MEMORY_ID = 'mem_01KAJ3V5S0Q8T7R6P5N4M3K2J1'

/** The example of a parameter, by its name and the part of the API; undefined when any would do. */
export const parameterExample = (name: string, tag: string): unknown =>
  name !== 'id'
    ? VALUES[name]
    : ({
        collections: IDS['Collection'],
        edges: VALUES['edge_id'],
        recall: VALUES['pin_id'],
        agents: VALUES['agent_id'],
      }[tag] ?? MEMORY_ID)

/**
 * An instance of a JSON Schema as `z.toJSONSchema` makes them, with values that tell something.
 * @param schemas what `$ref` points into
 */
export function exampleOf(schema: Json, schemas: Json, name = '', record = ''): unknown {
  const { $ref: reference, enum: choices, items } = schema
  if (typeof reference === 'string') {
    const id = reference.split('/').at(-1) ?? ''
    return exampleOf(jsonOf(schemas[id]), schemas, name, id)
  }
  if ('const' in schema) return schema['const']
  if (Array.isArray(choices)) return choices.find((choice) => choice === VALUES[name]) ?? choices[0]
  switch (schema['type']) {
    case 'array':
      return name === 'warnings' ? [] : [exampleOf(jsonOf(items), schemas, name)]
    case 'object':
      return objectExample(schema, schemas, name, record)
    case 'boolean':
      return name !== 'truncated' && name !== 'embedding_pending'
    case 'integer':
    case 'number':
      return VALUES[name] ?? 1
    default:
      return name === 'id' ? (IDS[record] ?? MEMORY_ID) : (VALUES[name] ?? 'text')
  }
}

function objectExample({ properties, required }: Json, schemas: Json, name: string, record: string): unknown {
  if (!properties) return VALUES[name] ?? {}
  const needed = new Set(Array.isArray(required) ? required : [])
  const shown = Object.entries(jsonOf(properties)).filter(([key]) => needed.has(key) || key in VALUES)
  return Object.fromEntries(shown.map(([key, type]) => [key, exampleOf(jsonOf(type), schemas, key, record)]))
}

const isJson = (value: unknown): value is Json => typeof value === 'object' && value !== null

const jsonOf = (value: unknown): Json => (isJson(value) ? value : {})
