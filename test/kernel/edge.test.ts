import { request } from 'node:http'
import { describe, expect, test } from 'vitest'
import { describeKernels, type OpenKernel } from './api.ts'

const OBJECTIVE = { title: 'Stars', goal: 'Know how many there are', owner: { type: 'agent', id: 'ana' } }
const TOKEN = 'a-token-of-the-test'
const bearer = (token: string): { headers: Record<string, string> } => ({ headers: { Authorization: token } })

/** Some headers can only be sent by hand. */
function rawStatus(url: string, method: string, headers: Record<string, string | string[]>): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    sent.on('error', reject).end()
  })
}

describeKernels(
  'a kernel with a token',
  (open) => {
    test('kernel#1 every route needs the token: health, capabilities and unknown paths too', async () => {
      const paths = ['/health', '/capabilities', '/nothing/here', '/objectives', '']
      for (const path of paths) {
        const refused = await open().call('GET', path)
        expect([path, refused.status, refused.body]).toEqual([path, 401, { error: 'unauthorized' }])
        expect(refused.headers.get('www-authenticate')).toBe('Bearer realm="kernel"')
        expect(refused.text.endsWith('}\n')).toBe(true)
      }
      const statuses = await Promise.all(
        paths
          .slice(0, 3)
          .map(async (path) => (await open().call('GET', path, undefined, bearer(`Bearer ${TOKEN}`))).status),
      )
      expect(statuses).toEqual([200, 200, 404])
    })

    test('kernel#2 the scheme in any case passes; a wrong token, another scheme, two headers and one character more do not', async () => {
      const statusOf = async (value: string): Promise<number> =>
        (await open().call('GET', '/health', undefined, bearer(value))).status
      expect(await statusOf(`bearer ${TOKEN}`)).toBe(200)
      for (const wrong of [`Bearer wrong`, `Basic ${TOKEN}`, `Bearer ${TOKEN}x`, TOKEN, 'Bearer']) {
        expect([wrong, await statusOf(wrong)]).toEqual([wrong, 401])
      }
      const twice = { Authorization: [`Bearer ${TOKEN}`, `Bearer ${TOKEN}`] }
      expect(await rawStatus(`${open().url}/health`, 'GET', twice)).toBe(401)
    })

    test('without the token neither a body that is too large nor a capability that is missing is told of', async () => {
      const raw = Buffer.alloc(8 * 1024 * 1024 + 1, 0x20)
      expect((await open().call('POST', '/objectives', undefined, { raw })).status).toBe(401)
      expect((await open().call('POST', '/artifacts', {})).status).toBe(401)
    })
  },
  { token: TOKEN },
)

describeKernels('a kernel without a token', (open) => {
  test('kernel#3 requests pass with and without a header', async () => {
    expect((await open().call('GET', '/health')).status).toBe(200)
    expect((await open().call('GET', '/health', undefined, bearer('Bearer whatever'))).status).toBe(200)
    expect((await open().call('GET', '/health', undefined, bearer('Basic x'))).status).toBe(200)
  })

  test('kernel#4 a scope is needed, in the query of reads and in body or query of writes, and all given are equal', async () => {
    const { call } = open()
    const query = '?scopeKind=test&scopeId=four'
    const scope = { kind: 'test', id: 'four' }
    const statusOf = async (method: string, path: string, body?: object): Promise<number> =>
      (await call(method, path, body)).status
    for (const path of ['/objectives', '/projects', '/activity', '/objectives/x', '/objectives?scopeKind=test']) {
      expect([path, await statusOf('GET', path)]).toEqual([path, 400])
    }
    expect(await statusOf('GET', `/objectives?scopeKind=%20&scopeId=four`)).toBe(400)
    expect(await statusOf('GET', `/objectives${query}`)).toBe(200)
    expect(await statusOf('GET', `/objectives${query}&scopeId=five`)).toBe(400)
    expect(await statusOf('POST', '/objectives', OBJECTIVE)).toBe(400)
    expect(await statusOf('POST', `/objectives${query}`, OBJECTIVE)).toBe(201)
    expect(await statusOf('POST', '/objectives', { ...OBJECTIVE, scope })).toBe(201)
    expect(await statusOf('POST', `/objectives${query}`, { ...OBJECTIVE, scope })).toBe(201)
    expect(await statusOf('POST', `/objectives${query}`, { ...OBJECTIVE, scope: { kind: 'test', id: 'x' } })).toBe(400)
  })

  test('kernel#6 unknown fields, a second document, wrong types, wrong case, malformed JSON and text/plain are 400', async () => {
    const api = open().api()
    const path = `/objectives?${new URLSearchParams({ scopeKind: api.scope.kind, scopeId: api.scope.id }).toString()}`
    const json = JSON.stringify(OBJECTIVE)
    const bodies = [
      JSON.stringify({ ...OBJECTIVE, colour: 'red' }),
      JSON.stringify({ ...OBJECTIVE, priority: '1' }),
      JSON.stringify({ ...OBJECTIVE, status: 'done' }),
      JSON.stringify({ Title: 'x', goal: 'y', owner: OBJECTIVE.owner }),
      JSON.stringify({ ...OBJECTIVE, title: '  ' }),
      JSON.stringify({ ...OBJECTIVE, goal: 'a\0b' }),
      json.replace('{', '{"constraints":{"most":1e400},'),
      `${json}{}`,
      `${json},`,
      `[${json}]`,
      'null',
      '{"title":',
      Buffer.from([0x7b, 0xff, 0x7d]),
    ]
    for (const raw of bodies) {
      const reply = await open().call('POST', path, undefined, { raw })
      expect([raw, reply.status, typeof reply.body.error]).toEqual([raw, 400, 'string'])
    }
    const answerTo = async (type: string): Promise<[number, string | undefined]> => {
      const { status, body } = await open().call('POST', path, undefined, {
        raw: json,
        headers: { 'Content-Type': type },
      })
      return [status, body.error]
    }
    const refusals = ['text/plain', 'application/xml', 'application/jsonx', 'multipart/form-data; boundary=x', ';']
    for (const type of [...refusals, 'application/json, text/plain']) {
      expect([type, await answerTo(type)]).toEqual([type, [400, 'Content-Type must be application/json']])
    }
    for (const type of ['application/json', 'Application/JSON; charset=utf-8', 'application/merge-patch+json']) {
      expect([type, await answerTo(type)]).toEqual([type, [201, undefined]])
    }
    // a Buffer goes without a content type
    expect((await open().call('POST', path, undefined, { raw: Buffer.from(json) })).status).toBe(201)
    expect((await api.get('/objectives')).body).toHaveLength(4)
  })

  test('what is wrong with a body is told by its field', async () => {
    const api = open().api()
    const tell = async (fields: object): Promise<string> => (await api.post('/objectives', fields)).body.error
    expect(await tell({ ...OBJECTIVE, title: undefined })).toBe('title is required')
    expect(await tell({ ...OBJECTIVE, colour: 'red' })).toBe('colour is not a known field')
    expect(await tell({ ...OBJECTIVE, priority: -1 })).toBe('priority must be at least 0')
    expect(await tell({ ...OBJECTIVE, constraints: 5 })).toBe('constraints must be a string or an array or an object')
    expect(await tell({ ...OBJECTIVE, owner: { type: 'user', id: 'x' } })).toBe('owner.type must be one of agent, team')
    expect((await open().call('GET', '/objectives?scopeKind=local')).body.error).toBe('scopeId is required')
    expect((await api.get('/objectives?limit=0')).body.error).toBe('limit must be 1 to 100')
  })

  test('of a key that stands twice in a body the last counts, and an empty body is an empty object', async () => {
    const api = open().api()
    const raw = `{"title":"one","goal":"x","owner":{"type":"agent","id":"ana"},"title":"two"}`
    const query = new URLSearchParams({ scopeKind: api.scope.kind, scopeId: api.scope.id }).toString()
    expect((await open().call('POST', `/objectives?${query}`, undefined, { raw })).body.title).toBe('two')
    const empty = await open().call('POST', `/objectives?${query}`)
    expect([empty.status, empty.body.error]).toEqual([400, expect.stringMatching(/^goal|^title/)])
  })

  test('kernel#7 an unknown path is a JSON 404, another method 405 with what is allowed', async () => {
    const { call, url } = open()
    for (const path of ['/nothing', '', '/', '/objectives/', '/objectives/a/b', '/Objectives', '/objectives/%00']) {
      const reply = await call('GET', path)
      expect([path, reply.status, typeof reply.body.error]).toEqual([path, 404, 'string'])
      expect(reply.headers.get('content-type')).toMatch(/^application\/json/)
    }
    const refused = async (method: string, path: string): Promise<[number, string | null]> => {
      const reply = await call(method, path)
      return [reply.status, reply.headers.get('allow')]
    }
    expect(await refused('DELETE', '/objectives')).toEqual([405, 'POST, GET, HEAD'])
    expect(await refused('POST', '/objectives/x')).toEqual([405, 'GET, HEAD, PUT'])
    expect(await refused('POST', '/agent-runs/admission')).toEqual([405, 'GET, HEAD'])
    expect(await refused('POST', '/health')).toEqual([405, 'GET, HEAD'])
    // also of what is not configured
    expect(await refused('PATCH', '/artifacts')).toEqual([405, 'POST, GET, HEAD'])
    expect(await rawStatus(`${url}/objectives`, 'PROPFIND', {})).toBe(405)
    expect(await rawStatus(`${url}/objectives/%zz`, 'GET', {})).toBe(404)
    expect((await call('POST', '/objectives/x/y', undefined, { raw: 'no JSON' })).status).toBe(404)
  })

  test('kernel#8 a body of 8 MiB and one byte is 413, of 8 MiB it is read', async () => {
    const bytes = 8 * 1024 * 1024
    const sized = (size: number): string => {
      const json = JSON.stringify(OBJECTIVE)
      return json + ' '.repeat(size - json.length)
    }
    const api = open().api()
    const path = `/objectives?${new URLSearchParams({ scopeKind: api.scope.kind, scopeId: api.scope.id }).toString()}`
    const large = await open().call('POST', path, undefined, { raw: sized(bytes + 1) })
    expect([large.status, large.body.error]).toEqual([413, 'the body is larger than 8 MiB'])
    const whole = await open().call('POST', path, undefined, { raw: Buffer.from(sized(bytes)) })
    expect(whole.status).toBe(201)
  })

  test('kernel#9 a request id is echoed or made, and stands in the event, as does the correlation id', async () => {
    const { call } = open()
    const scope = open().scope()
    const path = `/objectives?${new URLSearchParams({ scopeKind: scope.kind, scopeId: scope.id }).toString()}`
    const headers = { 'X-Request-ID': 'mine 1', 'X-Correlation-ID': 'together' }
    const echoed = await call('POST', path, OBJECTIVE, { headers })
    expect(echoed.headers.get('x-request-id')).toBe('mine 1')
    const made = await call('POST', path, OBJECTIVE)
    expect(made.headers.get('x-request-id')).toMatch(/^req_[0-9A-Z]{26}$/)
    const replaced = await call('GET', '/nothing', undefined, { headers: { 'X-Request-ID': 'x'.repeat(129) } })
    expect(replaced.headers.get('x-request-id')).toMatch(/^req_/)
    const { body } = await open().api(scope).get('/activity?order=asc&includeDetails=true')
    expect(body.items).toEqual([
      expect.objectContaining({ requestId: 'mine 1', correlationId: 'together' }),
      expect.objectContaining({ requestId: made.headers.get('x-request-id') }),
    ])
    const long = { headers: { 'X-Correlation-ID': 'x'.repeat(129) } }
    expect((await call('POST', path, OBJECTIVE, long)).status).toBe(400)
    // a read has no events that would bear it
    expect((await call('GET', path, undefined, long)).status).toBe(200)
  })

  test('kernel#11 limits, offsets and cursors out of range, half, or not ours are 400', async () => {
    const api = open().api()
    for (let i = 0; i < 3; i++) await api.post('/objectives', { ...OBJECTIVE, title: `${i}` })
    const first = await api.get('/objectives?limit=2')
    const cursor = first.headers.get('x-next-cursor') ?? ''
    expect(first.body).toHaveLength(2)
    const queries = [
      'limit=0',
      'limit=101',
      'limit=x',
      'limit=1.5',
      'limit=1&limit=2',
      'offset=-1',
      'offset=x',
      'offset=1000001',
      `cursor=${cursor}&offset=0`,
      `cursor=${cursor}x`,
      `cursor=x${cursor}`,
      'cursor=',
      `cursor=${cursor}&status=active`,
    ]
    for (const query of queries) expect([query, (await api.get(`/objectives?${query}`)).status]).toEqual([query, 400])
    for (const query of ['limit=0', 'limit=101', 'cursor=x', 'order=up', 'severity=bad', 'includeDetails=1']) {
      expect([query, (await api.get(`/activity?${query}`)).status]).toEqual([query, 400])
    }
    const rest = await api.get(`/objectives?limit=2&cursor=${cursor}`)
    expect(rest.body).toHaveLength(1)
    expect(rest.headers.get('x-next-cursor')).toBeNull()
    expect((await api.get('/objectives?colour=red')).status).toBe(200)
  })

  test('HEAD is answered like GET, without a body', async () => {
    expect(await rawStatus(`${open().url}/health`, 'HEAD', {})).toBe(200)
  })

  test('a handler takes paths whose prefix a router before it took off', async () => {
    const origin = open().url.replace('/api/v1', '')
    expect((await fetch(`${origin}/health`)).status).toBe(200)
    expect((await fetch(`${origin}/api/v1`)).status).toBe(404)
  })
})

describeKernels(
  'a kernel whose host knows who asks',
  (open) => {
    test('the identity of the host replaces what a request claims', async () => {
      const api = open().api()
      await api.post('/objectives', { ...OBJECTIVE, actor: { type: 'user', id: 'mallory' } })
      const { body } = await api.get('/activity')
      expect(body.items).toMatchObject([{ actor: { type: 'user', id: 'host' }, actorSource: 'host' }])
    })
  },
  { hostIdentity: async () => ({ type: 'user', id: 'host' }) },
)

describe('who acts', () => {
  describeKernels('without a host', (open: () => OpenKernel) => {
    test('an actor is what the body claims, else anonymous', async () => {
      const api = open().api()
      await api.post('/objectives', { ...OBJECTIVE, actor: { type: 'user', id: 'olga' } })
      await api.post('/objectives', OBJECTIVE)
      const { body } = await api.get('/activity?order=asc')
      expect(body.items).toMatchObject([
        { actor: { type: 'user', id: 'olga' }, actorSource: 'claimed' },
        { actor: { type: 'user', id: 'anonymous' }, actorSource: 'claimed' },
      ])
    })
  })
})
