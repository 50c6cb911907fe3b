import { afterAll, beforeAll, describe, expect, test } from 'vitest'
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
  parameters?: { name?: string; in?: string; $ref?: string }[]
  responses: Record<string, unknown>
}

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
    for (const [path, { parameters = [] }] of await operations()) {
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
