import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import * as z from 'zod'
import { errorEnvelope, healthAnswer, readyAnswer } from '../../../src/memory/answers.ts'
import { OPERATIONS, type Operation, type OperationName } from '../../../src/memory/routes/operations.ts'
import { startMemoryApi, type MemoryApi, type Reply } from '../../support/memory-api.ts'

let api: MemoryApi
beforeAll(async () => {
  api = await startMemoryApi({ dialect: 'sqlite' })
})
afterAll(() => api.stop())

interface Operated {
  operationId: string
  tags: string[]
  parameters: { name?: string; in?: string; $ref?: string }[]
  requestBody?: Content
  responses: Record<string, Content & { $ref?: string; description?: string }>
}

interface Content {
  content?: { 'application/json': { schema: z.core.JSONSchema.JSONSchema; example: unknown } }
}

/** The parts of an OpenAPI 3.1 document that ours has, and no others: a slip of the pen is an unknown key. */
const referencePart = z.strictObject({ $ref: z.string(), description: z.string().optional() })
const schemaPart = z.record(z.string(), z.unknown())
const contentPart = z.strictObject({ 'application/json': z.strictObject({ schema: schemaPart, example: z.unknown() }) })
const parameterPart = z.strictObject({
  name: z.string(),
  in: z.enum(['path', 'query', 'header']),
  required: z.boolean().optional(),
  description: z.string(),
  schema: schemaPart,
  example: z.string().optional(),
})
const responsePart = z.strictObject({
  description: z.string(),
  headers: z.record(z.string(), referencePart).optional(),
  content: contentPart.optional(),
})
const operationPart = z.strictObject({
  operationId: z.string(),
  summary: z.string(),
  description: z.string().optional(),
  tags: z.tuple([z.string()]),
  parameters: z.array(z.union([referencePart, parameterPart])),
  requestBody: z.strictObject({ required: z.literal(true), content: contentPart }).optional(),
  responses: z.record(z.string().regex(/^(\d{3}|default)$/), z.union([referencePart, responsePart])),
})
const methodNames = z.enum(['get', 'post', 'put', 'patch', 'delete'])
const documentPart = z.strictObject({
  openapi: z.literal('3.1.0'),
  info: z.strictObject({
    title: z.string(),
    summary: z.string(),
    description: z.string(),
    version: z.string(),
    license: z.strictObject({ name: z.string(), identifier: z.string() }),
  }),
  servers: z.array(z.strictObject({ url: z.string() })),
  security: z.array(z.record(z.string(), z.array(z.string()))),
  tags: z.array(z.strictObject({ name: z.string(), description: z.string() })),
  paths: z.record(z.string().startsWith('/'), z.partialRecord(methodNames, operationPart)),
  components: z.strictObject({
    securitySchemes: z.record(z.string(), schemaPart),
    parameters: z.record(z.string(), parameterPart),
    headers: z.record(z.string(), z.strictObject({ description: z.string(), schema: schemaPart })),
    responses: z.record(z.string(), responsePart),
    schemas: z.record(z.string(), schemaPart),
  }),
})

/** Every operation with its path. */
async function operations(): Promise<[path: string, operation: Operated][]> {
  const { paths } = (await api.call('GET', '/openapi.json')).body
  return Object.entries<Record<string, Operated>>(paths).flatMap(([path, methods]) =>
    Object.values(methods).map((operation): [string, Operated] => [path, operation]),
  )
}

test('docs/openapi.json is what the server serves (`npm run openapi` writes it)', async () => {
  const { status, headers, body } = await api.call('GET', '/openapi.json')
  expect([status, headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8'])
  await expect(`${JSON.stringify(body, null, 2)}\n`).toMatchFileSnapshot('../../../docs/openapi.json')
})

test('the document stands behind the same guard as all else', async () => {
  const keyed = await startMemoryApi({ dialect: 'sqlite', env: { MEM_API_KEY: 'k' } })
  expect((await keyed.call('GET', '/openapi.json')).status).toBe(401)
  expect((await keyed.call('GET', '/openapi.json', undefined, { headers: { Authorization: 'Bearer k' } })).status).toBe(
    200,
  )
  expect((await keyed.call('POST', '/openapi.json', {}, { headers: { Authorization: 'Bearer k' } })).status).toBe(405)
  await keyed.stop()
})

describe('the document is sound:', () => {
  test('it has the structure of OpenAPI 3.1, and every tag and key that it names', async () => {
    const { body } = await api.call('GET', '/openapi.json')
    expect(documentPart.safeParse(body).error?.issues).toBe(undefined)
    const tags = body.tags.map(({ name }: { name: string }) => name)
    const used = new Set((await operations()).flatMap(([, each]) => each.tags))
    expect([...used].toSorted()).toEqual(tags.toSorted())
    expect(Object.keys(body.security[0])).toEqual(Object.keys(body.components.securitySchemes))
  })

  test('every operation names its refusals, by status and code', async () => {
    for (const [path, { operationId, responses, parameters }] of await operations()) {
      const refused = Object.entries(responses).filter(([status]) => Number(status) >= 400)
      const codes = new Map(refused.map(([status, { description = '' }]) => [status, description]))
      expect([operationId, codes.has('400')]).toEqual([operationId, path.startsWith('/v1')])
      expect([operationId, codes.get('401'), codes.get('500')]).toEqual([
        operationId,
        expect.stringContaining('`unauthorized`'),
        '`internal_error`',
      ])
      expect([operationId, codes.has('404')]).toEqual([operationId, path.includes('{')])
      const needsAgent = parameters.some(({ $ref }) => $ref === '#/components/parameters/agent')
      expect([operationId, codes.get('400')?.includes('missing_agent_id') ?? false]).toEqual([operationId, needsAgent])
    }
  })

  test('every example is one of what it is an example of', async () => {
    const { body } = await api.call('GET', '/openapi.json')
    const $defs = JSON.parse(JSON.stringify(body.components.schemas).replaceAll('#/components/schemas/', '#/$defs/'))
    const problems = (what: string, { content: each }: Content): unknown[] => {
      if (!each) return []
      const { schema: type, example } = each['application/json']
      const local = JSON.parse(JSON.stringify(type).replaceAll('#/components/schemas/', '#/$defs/'))
      const { error } = z.fromJSONSchema({ ...local, $defs }).safeParse(example)
      return error ? [[what, error.issues]] : []
    }
    const all = (await operations()).flatMap(([, { operationId, requestBody = {}, responses }]) => [
      ...problems(`${operationId} request`, requestBody),
      ...Object.values(responses).flatMap((each) => problems(`${operationId} answer`, each)),
    ])
    expect(all).toEqual([])
  })

  test('every reference leads somewhere', async () => {
    const { body } = await api.call('GET', '/openapi.json')
    const refs = [...JSON.stringify(body).matchAll(/"\$ref":"#([^"]+)"/g)].map(([, path = '']) =>
      path.split('/').slice(1),
    )
    const dead = refs.filter((steps) => steps.reduce((at, step) => at?.[step], body) === undefined)
    expect(refs.length).toBeGreaterThan(100)
    expect(dead).toEqual([])
  })

  test('every operation is told once, under a name of its own', async () => {
    const ids = (await operations()).map(([, { operationId }]) => operationId)
    expect(ids.toSorted()).toEqual([...Object.keys(OPERATIONS), 'health', 'ready'].toSorted())
  })

  test('every part of a path is a parameter, and the other way round', async () => {
    for (const [path, { parameters }] of await operations()) {
      const named = parameters.filter((each) => each.in === 'path').map((each) => `{${each.name}}`)
      expect([path, path.match(/\{\w+\}/g) ?? []]).toEqual([path, named])
      expect(path).not.toMatch(/[()^]|::/)
    }
  })

  test('every answer has a status that the route gives', async () => {
    for (const [, { operationId, responses }] of await operations()) {
      expect([operationId, Object.keys(responses)[0]]).toEqual([operationId, expect.stringMatching(/^20[014]$/)])
    }
  })
})

test('what the document takes, the server takes, and nothing else', async () => {
  const { components } = (await api.call('GET', '/openapi.json')).body
  const $defs = JSON.parse(JSON.stringify(components.schemas).replaceAll('#/components/schemas/', '#/$defs/'))
  const ws = await api.workspace()
  const id = await api.imprint(ws, 'The lamp is lit at dusk.')
  const long = (length: number): string => 'x'.repeat(length)
  const many = (length: number): object => Object.fromEntries(Array.from({ length }, (_, i) => [`k${i}`, '']))
  const bodies: [name: string, path: string, good: object[], bad: object[]][] = [
    [
      'CreateWorkspace',
      '/workspaces',
      [{ name: long(200), region: long(64), chunker_id: 'code-go', auto_link_max_edges: 99, auto_link_threshold: 2 }],
      [
        { name: '' },
        { name: long(201) },
        { region: long(65) },
        { chunker_id: 'nope' },
        { chunker_id: '' },
        { auto_link_max_edges: 0 },
        { auto_link_max_edges: 1.5 },
        { auto_link_threshold: 0 },
        { meta: [] },
      ],
    ],
    ['CreateCollection', `/workspaces/${ws}/collections`, [{ name: long(200) }], [{ name: long(201) }, { name: '' }]],
    [
      'Imprint',
      `/workspaces/${ws}/memories`,
      [{ tags: { [long(128)]: long(4096) } }, { tags: many(256) }, { chunker_id: 'csv', chunker_config: { a: 'b' } }],
      [
        { tags: { [long(129)]: '' } },
        { tags: { '': '' } },
        { tags: { k: long(4097) } },
        { tags: many(257) },
        { chunker_id: 'nope' },
        { chunker_config: { a: 1 } },
        { collection_id: id },
        { tags: { k: 1 } },
      ],
    ],
    ['Link', `/workspaces/${ws}/memories/${id}/edges`, [], [{ target_memory_id: 'x' }, { target_memory_id: ws }]],
    [
      'Recall',
      `/workspaces/${ws}/recall`,
      [{ query: long(32 * 1024) }, { filters: { tags: { k: ['v', 'w'] } } }, { memory_ids: [id], mode: 'lookup' }],
      [{ query: long(32 * 1024 + 1) }, { filters: { tags: { k: [1] } } }, { memory_ids: [] }, { memory_ids: [ws] }],
    ],
    ['CreatePin', `/workspaces/${ws}/recall/pins`, [{ label: long(200) }], [{ label: long(201) }, { k: 101 }]],
    ['RegisterAgent', `/workspaces/${ws}/agents`, [{}], [{ agent_id: 'x' }, { model: long(201) }]],
  ]
  const needed: Readonly<Record<string, object>> = {
    CreateWorkspace: { name: 'w' },
    Imprint: { content: 'x' },
    Link: { edge_type: 'mentions' },
    Recall: { query: 'q' },
    CreatePin: { query: 'q' },
    RegisterAgent: { agent_id: 'agent_x', identity_provider: 'opaque' },
  }
  for (const [name, path, good, bad] of bodies) {
    const said = z.fromJSONSchema({ $ref: `#/$defs/${name}Request`, $defs })
    const takenBy = async (fields: object): Promise<object> => {
      const body = { ...needed[name], ...fields }
      const { status } = await api.call('POST', path, body)
      return { fields, document: said.safeParse(body).success, server: status < 300 }
    }
    for (const fields of good) expect(await takenBy(fields)).toEqual({ fields, document: true, server: true })
    for (const fields of bad) expect(await takenBy(fields)).toEqual({ fields, document: false, server: false })
  }
})

test('every operation answers what the document says', async () => {
  const seen = new Set<string>()
  const check = (name: OperationName, { status, body }: Reply): Reply['body'] => {
    seen.add(name)
    const { answer }: Operation = OPERATIONS[name]
    const isGood = expect.toSatisfy((code: number) => code >= 200 && code < 300)
    const problem = answer ? answer.safeParse(body).error?.issues : body
    expect([name, status, problem]).toEqual([name, isGood, undefined])
    return body
  }
  const call = async (name: OperationName, method: string, path: string, body?: unknown): Promise<Reply['body']> =>
    check(name, await api.call(method, path, body))

  const { id: ws } = await call('createWorkspace', 'POST', '/workspaces', { name: 'w', meta: { a: 1 }, region: 'r' })
  const W = `/workspaces/${ws}`
  await call('updateWorkspace', 'PUT', W, { name: 'w', auto_link_enabled: true, auto_link_threshold: 0.1 })
  await call('getWorkspace', 'GET', W)
  await call('listWorkspaces', 'GET', '/workspaces?limit=1')
  const { id: collection_id } = await call('createCollection', 'POST', `${W}/collections`, { name: 'c' })
  await call('getCollection', 'GET', `${W}/collections/${collection_id}`)
  await call('listCollections', 'GET', `${W}/collections`)

  const content = 'The keeper likes rye bread.'
  const imprint = (fields: object): Promise<Reply['body']> =>
    call('imprint', 'POST', `${W}/memories`, { content, ...fields })
  const { memory_id: a } = await imprint({ collection_id, tags: { k: 'v' }, chunker_id: 'csv', chunker_config: {} })
  const { memory_id: b } = await imprint({ auto_link: false })
  const { memory_id: c } = await imprint({ auto_link: false, content: 'Zebras.' })
  const M = `${W}/memories/${a}`
  const { head_watermark: first } = await call('lookup', 'GET', M)
  const updated = await call('update', 'PUT', M, { content: 'x', expected_watermark: first })
  const patch = [{ old_string: 'x', new_string: 'y' }]
  await call('patch', 'PATCH', M, { patch, expected_watermark: updated.watermark })
  await call('patch', 'PATCH', `${W}/memories/${b}`, {
    patch: [],
    expected_watermark: (await api.call('GET', `${W}/memories/${b}`)).body.head_watermark,
  })
  await call('append', 'POST', `${M}:append`, { content: ' z' })
  await call('lookupAt', 'GET', `${M}@${first}`)
  await call('watermarkHistory', 'GET', `${M}/watermarks?limit=1`)
  await call('listMemories', 'GET', `${W}/memories?include_content=false`)
  await call('setTag', 'PUT', `${M}/tags/t`, { value: '1' })
  await call('postTag', 'POST', `${M}/tags/t`, { value: '2' })
  await call('deleteTag', 'DELETE', `${M}/tags/t`)

  const edge = { target_memory_id: c, edge_type: 'mentions', properties_json: { p: 1 } }
  const { edge: linked } = await call('link', 'POST', `${M}/edges`, edge)
  const rows = [
    { source_memory_id: b, target_memory_id: a, edge_type: 'references' },
    { ...edge, source_memory_id: a },
  ]
  await call('linkBatch', 'POST', `${W}/edges/:batch`, { edges: rows })
  await call('listEdges', 'GET', `${M}/edges?limit=1`)
  await call('neighbors', 'POST', `${W}/graph/neighbors`, { memory_id: a })
  await call('traverse', 'POST', `${W}/graph/traverse`, { seed_memory_id: a, depth: 2 })
  await call('graphStats', 'GET', `${W}/graph/stats`)
  const expansion = { graph_expansion: { depth: 1 }, include_cells: true, k: 1 }
  for (const mode of ['hybrid', 'keyword', 'vector', 'lookup']) {
    await call('recall', 'POST', `${W}/recall`, { query: 'rye bread', mode, memory_ids: [a], ...expansion })
  }
  await call('unlink', 'DELETE', `${W}/edges/${linked.edge_id}`)

  const { pin_id } = await call('createPin', 'POST', `${W}/recall/pins`, { query: 'q', label: 'l' })
  await call('listPins', 'GET', `${W}/recall/pins`)
  await call('deletePin', 'DELETE', `${W}/recall/pins/${pin_id}`)
  const agent = { agent_id: 'agent_x', identity_provider: 'opaque', capabilities: { c: 1 }, identity_proof: { p: 1 } }
  await call('registerAgent', 'POST', `${W}/agents`, agent)
  await call('getAgent', 'GET', `${W}/agents/agent_x`)
  await call('listAgents', 'GET', `${W}/agents?limit=1`)
  await call('deactivateAgent', 'DELETE', `${W}/agents/agent_x`)

  await call('forget', 'DELETE', `${M}?redact_audit=true`)
  for (const id of [b, c]) await call('forget', 'DELETE', `${W}/memories/${id}`)
  await call('ledgerQuery', 'GET', `${W}/ledger`)
  await call('deleteCollection', 'DELETE', `${W}/collections/${collection_id}`)
  await call('deleteWorkspace', 'DELETE', W)
  expect([...seen].toSorted()).toEqual(Object.keys(OPERATIONS).toSorted())

  expect(healthAnswer.safeParse((await api.call('GET', '//healthz')).body).success).toBe(true)
  expect(readyAnswer.safeParse((await api.call('GET', '//readyz')).body).success).toBe(true)
  expect(errorEnvelope.safeParse((await api.call('GET', W)).body).success).toBe(true)
})
