import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startMemoryApi, type MemoryApi } from '../support/memory-api.ts'
import { createClient, signIn, type Answer, type ConsoleClient, type Fields } from './console-client.ts'

const KEY = 'key-that-stays-here'
const BEARER = { headers: { Authorization: `Bearer ${KEY}` } }
let api: MemoryApi
let client: ConsoleClient
let ws: string
beforeAll(async () => {
  api = await startMemoryApi({ dialect: 'sqlite', env: { MEM_API_KEY: KEY } })
  client = await signIn(api.url, KEY)
  ws = (await api.call('POST', '/workspaces', { name: 'Lighthouse' }, BEARER)).body.id
})
afterAll(() => api.stop())

const send = (operation: string, fields: Fields = {}, headers = {}): Promise<Answer> =>
  client.post('/ui/api/reference/send', { operation, ...fields }, headers)

const statusIn = ({ text }: Answer): number => Number(/class="status status-\d">(\d+)</.exec(text)?.[1])

describe('the reference page', () => {
  test('tells every operation of the document, with a form for it, and the key is not in it', async () => {
    const { text, headers } = await client.get('/ui/reference')
    const { paths } = (await api.call('GET', '/openapi.json', undefined, BEARER)).body
    const ids = Object.values<Record<string, { operationId: string }>>(paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId),
    )
    expect(ids.length).toBeGreaterThan(38)
    for (const id of ids) {
      expect([id, text.includes(`<details id="${id}"`)]).toEqual([id, true])
      expect([id, text.includes(`name="operation" value="${id}"`)]).toEqual([id, true])
    }
    expect(text).not.toContain(KEY)
    expect(text).toContain(`value="${ws}"`)
    expect(headers.get('content-security-policy')).toContain("script-src 'self'")
  })

  test('gives the document, to who is signed in', async () => {
    const { text, headers } = await client.get('/ui/reference/openapi.json')
    expect([JSON.parse(text).openapi, headers.get('content-disposition')]).toEqual([
      '3.1.0',
      'attachment; filename="openapi.json"',
    ])
    expect((await createClient(api.url).get('/ui/reference/openapi.json')).status).toBe(303)
  })
})

describe('sending an operation', () => {
  test('goes out with the key of the server, as ui-admin, and shows the answer', async () => {
    const answer = await send('imprint', { 'path.ws': ws, body: '{"content": "The lamp is <lit>."}' })
    expect([answer.status, statusIn(answer)]).toEqual([200, 201])
    expect(answer.text).toContain('written_by_agent_id&quot;: &quot;ui-admin')
    expect(answer.text).toContain('$MEM_API_KEY')
    const [entry] = (await api.call('GET', `/workspaces/${ws}/ledger?limit=1`, undefined, BEARER)).body.entries
    expect(entry).toMatchObject({ op: 'imprint', agent_id: 'ui-admin' })
    const found = await send('recall', { 'path.ws': ws, body: '{"query": "lamp"}' })
    expect(found.text).toContain('The lamp is &lt;lit&gt;.')
    const listed = await send('listMemories', { 'path.ws': ws, 'query.include_content': 'false', 'query.limit': '1' })
    expect(listed.text).toContain('include_content=false')
    expect(listed.text).not.toContain('&lt;lit&gt;')
    for (const { text } of [answer, found, listed]) expect(text).not.toContain(KEY)
    expect(statusIn(await send('health'))).toBe(200)
  })

  test('what the API refuses is an answer like any other', async () => {
    expect(statusIn(await send('imprint', { 'path.ws': ws, body: 'no JSON' }))).toBe(400)
    expect(statusIn(await send('getWorkspace', { 'path.ws': 'ws_none' }))).toBe(404)
    const stale = { 'path.ws': ws, 'path.id': 'mem_x', 'header.If-Match': '*', body: '{"content": ""}' }
    expect(statusIn(await send('update', stale))).toBe(400)
  })

  test('a deletion wants its box ticked, and nothing leaves the paths of the document', async () => {
    const { id } = (await api.call('POST', '/workspaces', { name: 'gone' }, BEARER)).body
    expect((await send('deleteWorkspace', { 'path.ws': id })).status).toBe(400)
    expect((await api.call('GET', `/workspaces/${id}`, undefined, BEARER)).status).toBe(200)
    expect(statusIn(await send('deleteWorkspace', { 'path.ws': id, confirm: 'on' }))).toBe(204)
    expect((await send('metrics')).status).toBe(404)
    expect((await send('getWorkspace')).status).toBe(400)
    for (const part of ['.', '..']) expect((await send('getWorkspace', { 'path.ws': part })).status).toBe(400)
    for (const part of ['../../metrics', '%2e%2e', 'x?y=1', 'x#y', 'ws_\u00fc/..']) {
      const answer = await send('getWorkspace', { 'path.ws': part })
      expect([part, answer.status, statusIn(answer)]).toEqual([part, 200, 404])
    }
    expect((await send('imprint', { 'path.ws': ws, 'header.Idempotency-Key': 'a\r\nb', body: '{}' })).status).toBe(400)
  })

  test('needs the session and the token', async () => {
    const bare = await createClient(api.url).post('/ui/api/reference/send', { operation: 'health' })
    expect(bare.status).toBe(401)
    expect((await client.post('/ui/api/reference/send', { operation: 'health', csrf_token: 'x' })).status).toBe(403)
  })

  test('without scripts the answer is a page', async () => {
    const { text, status } = await send('health', {}, { 'upgrade-insecure-requests': '1' })
    expect(status).toBe(200)
    expect(text).toContain('<h1>Tell that the server lives</h1>')
    expect(text).toContain('href="/ui/reference#health"')
  })
})

test('with several tenants the workspace is named for them', async () => {
  const tenants = await startMemoryApi({ dialect: 'sqlite', env: { MEM_MODE: 'multi-tenant' } })
  const open = createClient(tenants.url)
  const { body } = await tenants.call('POST', '/workspaces', { name: 'tenant' })
  const answer = await open.post('/ui/api/reference/send', { operation: 'getWorkspace', 'path.ws': body.id })
  expect(statusIn(answer)).toBe(200)
  await tenants.stop()
})

describe('a form that was refused comes back with what was written into it', () => {
  const page = { 'upgrade-insecure-requests': '1' }

  test('to be mended and sent again', async () => {
    const fields = {
      workspace_id: ws,
      content: 'a long text\nof <two> lines',
      tags: 'no equals sign',
      collection_id: '',
    }
    const { status, text } = await client.post('/ui/api/memories/imprint', fields, page)
    expect(status).toBe(400)
    expect(text).toContain('action="/ui/api/memories/imprint"')
    expect(text).toContain('>\na long text\nof &lt;two&gt; lines</textarea>')
    expect(text).toContain('name="tags" value="no equals sign"')
    expect(text).toContain(`type="hidden" name="workspace_id" value="${ws}"`)
  })

  test('but not when another site may have filled it in, and no secret', async () => {
    const foreign = await client.post('/ui/api/workspaces/create', { name: 'planted', csrf_token: 'x' }, page)
    expect([foreign.status, foreign.text.includes('planted')]).toEqual([403, false])
    const agent = { workspace_id: ws, agent_id: 'x', identity_provider: 'opaque', identity_proof: '{"p": "hush"}' }
    const refused = await client.post('/ui/api/agents/register', agent, page)
    expect([refused.status, refused.text.includes('hush')]).toEqual([400, false])
  })

  test('and so do filters', async () => {
    const audit = await client.get('/ui/audit?since=yesterday&agent=ada')
    expect(audit.status).toBe(400)
    for (const value of ['yesterday', 'ada']) expect(audit.text).toContain(`value="${value}"`)
    const graph = await client.get(`/ui/workspaces/${ws}/graph?seed=mem_none`)
    expect([graph.status, graph.text.includes('value="mem_none"')]).toEqual([404, true])
  })
})
