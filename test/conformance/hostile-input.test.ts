import type { OutgoingHttpHeaders } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { describeOnBoth } from '../support/memory-api.ts'
import { expectEnvelope, send, type RawReply } from '../support/raw-request.ts'

const ABSENT = '00000000000000000000000000'
const MIB = 1024 * 1024

/** Path segments that are no id. */
const SEGMENTS = "%00 a%00b %ED%A0%80 %ff % %2F .. - * ' %22 %25 %F0%9F%98%80 [] %20 @ __proto__"
  .split(' ')
  .concat('x'.repeat(3000))

/** Query values, as they stand in a URL. */
const VALUES = ['', 'x'.repeat(4000), '9'.repeat(30)].concat(
  "%00 a%00 % %ff -1 0 1.5 1e9 NaN null [] ' 2026-13-01 0000-01-01 9999-12-31T23:59:59.999Z".split(' '),
)

/** What decodes as a cursor, but is none that a list gave. */
const CURSORS = [[''], ['\0'], [1], [1.5], [0, ''], [1e300, ''], [-1, '\0'], [null], {}, 'x', [9e15]].map((key) =>
  Buffer.from(JSON.stringify(key)).toString('base64url'),
)

const deep = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`

/** JSON to put where another type, or a smaller value, belongs. */
const ODD =
  String.raw`null true 0 -1 1.5 1e400 1e308 9007199254740993 "" [] {} [null] "\u0000" "\ud800" {"__proto__":1}`
    .split(' ')
    .concat('" "', deep(20_000), `"${'é'.repeat(40_000)}"`)

describeOnBoth('hostile input', (api) => {
  const ask = (method: string, path: string, body?: Uint8Array | string, headers: OutgoingHttpHeaders = {}) =>
    send(`${api().url}/v1${path}`, {
      method,
      headers: { 'Mem-Agent-Id': 'agent_test', ...headers },
      ...(body !== undefined && { body }),
    })
  const post = (path: string, body: Uint8Array | string, headers?: OutgoingHttpHeaders): Promise<RawReply> =>
    ask('POST', path, body, headers)
  /** What was sent and came, unless it is a success or a refusal in an envelope. */
  const faultOf = (reply: RawReply, sent: string): object | undefined => {
    if (reply.status >= 500) return { sent, reply }
    if (reply.status >= 400) expectEnvelope(reply, reply.status, String(JSON.parse(reply.text).error_code))
    return undefined
  }
  const setUp = async (): Promise<{ W: string; M: string; id: string; other: string }> => {
    const ws = await api().workspace()
    const [id, other] = [await api().imprint(ws, 'x', { tags: { k: 'v' } }), await api().imprint(ws, 'y')]
    return { W: `/workspaces/${ws}`, M: `/workspaces/${ws}/memories/${id}`, id, other }
  }

  test('memory#118 no path id causes a 5xx: 404', async () => {
    const { W, M } = await setUp()
    const paths = (segment: string): [method: string, path: string, body?: object][] => [
      ['GET', `/workspaces/${segment}`],
      ['PUT', `/workspaces/${segment}`, { name: 'x' }],
      ['GET', `${W}/memories/${segment}`],
      ['PUT', `${W}/memories/${segment}`, { content: 'x', expected_watermark: 'w' }],
      ['DELETE', `${W}/memories/${segment}`],
      ['POST', `${W}/memories/${segment}:append`, { content: 'x' }],
      ['GET', `${W}/memories/${segment}@${segment}`],
      ['GET', `${M}@${segment}`],
      ['GET', `${W}/memories/${segment}/watermarks`],
      ['GET', `${W}/memories/${segment}/edges`],
      ['GET', `${W}/collections/${segment}`],
      ['DELETE', `${W}/collections/${segment}`],
      ['GET', `${W}/agents/${segment}`],
      ['DELETE', `${W}/agents/${segment}`],
      ['DELETE', `${W}/edges/${segment}`],
      ['DELETE', `${W}/recall/pins/${segment}`],
    ]
    for (const segment of SEGMENTS) {
      for (const [method, path, body] of paths(segment)) {
        const reply = await ask(method, path, body && JSON.stringify(body))
        expect(expectEnvelope(reply, 404, 'not_found')).toHaveProperty('id')
      }
      expect(faultOf(await ask('PUT', `${M}/tags/${segment}`, '{"value":"x"}'), segment)).toBeUndefined()
      expect(faultOf(await ask('DELETE', `${M}/tags/${segment}`), segment)).toBeUndefined()
    }
  })

  test('memory#118 no query value causes a 5xx: 400 that names it', async () => {
    const { W, M } = await setUp()
    const queries: [path: string, names: string][] = [
      ['/workspaces', 'limit cursor'],
      [`${W}/collections`, 'limit cursor'],
      [`${W}/memories`, 'limit cursor collection_id include_content'],
      [`${M}/watermarks`, 'limit cursor'],
      [`${M}/edges`, 'limit cursor direction type'],
      [`${W}/recall/pins`, 'limit cursor'],
      [`${W}/agents`, 'limit cursor'],
      [`${W}/ledger`, 'since until actor agent_id memory_id edge_id op limit since_ledger_id cursor order'],
    ]
    for (const [path, names] of queries) {
      for (const name of names.split(' ')) {
        for (const value of name === 'cursor' ? [...VALUES, ...CURSORS] : VALUES) {
          const reply = await ask('GET', `${path}?${name}=${value}`)
          const field = reply.status === 200 ? name : expectEnvelope(reply, 400, 'invalid_input')['field']
          expect(name === 'cursor' && field === 'since_ledger_id' ? name : field).toBe(name)
        }
        expectEnvelope(await ask('GET', `${path}?${name}=1&${name}=2`), 400, 'invalid_input')
      }
    }
  })

  test('memory#118 a refusal tells back only the beginning of what was sent, and what there is instead', async () => {
    const { W, M } = await setUp()
    const huge = 'x'.repeat(MIB)
    const bodies: [path: string, body: object][] = [
      ['/workspaces', { name: 'x', chunker_id: huge }],
      ['/workspaces', { name: 'x', embedding_model: huge }],
      ['/workspaces', { name: 'x', [huge]: 1 }],
      [`${W}/memories`, { content: 'x', chunker_id: huge }],
      [`${W}/memories`, { content: 'x', tags: { [huge]: 'v' } }],
      [`${M}:append`, { content: 'x', expected_watermark: huge }],
      [`${W}/graph/neighbors`, { memory_id: `mem_${huge}` }],
      [`${W}/recall`, { query: 'x', mode: huge }],
    ]
    for (const [path, body] of bodies) {
      const reply = await post(path, JSON.stringify(body))
      expect(reply.status).toBeGreaterThanOrEqual(400)
      expect(reply.text.length).toBeLessThan(4000)
    }
    const known = await post('/workspaces', '{"name": "x", "chunker_id": "words"}')
    expect(JSON.parse(known.text).message).toContain('default, markdown, no-chunk, code-go, csv, jsonl')
    const ops = await ask('GET', `${W}/ledger?op=write`)
    expect(JSON.parse(ops.text).message).toContain('imprint, update')
    const number = await post(`${W}/recall`, '{"query": "x", "k": 1e308}')
    expect(JSON.parse(number.text).message).toBe('k must be between -9007199254740991 and 9007199254740991')
  })

  test('memory#118 a tag key that is too long is 400 by its name; one that decodes to nothing is no path', async () => {
    const { M } = await setUp()
    const long = await ask('PUT', `${M}/tags/${'k'.repeat(129)}`, '{"value":"x"}')
    expect(expectEnvelope(long, 400, 'invalid_input')).toEqual({ field: 'key' })
    for (const key of ['%ED%A0%80', '%ff', '%', 'a%00']) {
      expectEnvelope(await ask('PUT', `${M}/tags/${key}`, '{"value":"x"}'), 404, 'not_found')
    }
    expect(JSON.parse((await ask('GET', M)).text).tags).toEqual({ k: 'v' })
  })

  test('memory#118 no body causes a 5xx', async () => {
    const { W, M, id, other } = await setUp()
    const edge = { target_memory_id: other, edge_type: 'mentions' }
    const types = { edge_types: [], type: 'mentions', direction: 'out' }
    const workspace = { name: 'x', region: 'r', chunker_id: 'csv', embedding_model: 'hash:', meta: {} }
    const autoLink = {
      auto_link_enabled: true,
      auto_link_threshold: 1,
      auto_link_max_edges: 1,
      auto_link_max_incoming_per_day: 1,
    }
    const bodies: [method: string, path: string, body: object][] = [
      ['POST', '/workspaces', { ...workspace, ...autoLink }],
      ['PUT', W, { ...workspace, ...autoLink }],
      ['POST', `${W}/collections`, { name: 'c' }],
      ['POST', `${W}/memories`, { content: 'x', collection_id: `coll_${ABSENT}`, tags: {} }],
      ['POST', `${W}/memories`, { content: 'x', chunker_id: 'csv', chunker_config: {}, auto_link: true }],
      ['PUT', M, { content: 'x', tags: {}, expected_watermark: 'w' }],
      ['PATCH', M, { patch: [], expected_watermark: 'w' }],
      ['POST', `${M}:append`, { content: 'x', expected_watermark: 'w' }],
      ['PUT', `${M}/tags/k`, { value: 'v' }],
      ['POST', `${M}/edges`, { ...edge, type: 'mentions', properties_json: {}, properties: {} }],
      ['POST', `${W}/edges/:batch`, { edges: [{ source_memory_id: id, ...edge }] }],
      ['POST', `${W}/graph/neighbors`, { memory_id: id, k: 1, ...types }],
      ['POST', `${W}/graph/traverse`, { seed_memory_id: id, depth: 1, filter: {}, ...types }],
      ['POST', `${W}/recall`, { query: 'x', mode: 'hybrid', k: 1, filters: {}, weights: {}, include_cells: true }],
      ['POST', `${W}/recall`, { query: 'x', memory_ids: [id], graph_expansion: { depth: 1 } }],
      ['POST', `${W}/recall/pins`, { query: 'x', mode: 'hybrid', k: 1, watermark: 'w', label: 'l' }],
      ['POST', `${W}/agents`, { agent_id: 'agent_x', identity_provider: 'opaque', display_name: 'd', agent_type: 't' }],
      [
        'POST',
        `${W}/agents`,
        { agent_id: 'agent_x', identity_provider: 'opaque', identity_proof: {}, capabilities: {} },
      ],
    ]
    for (const [method, path, body] of bodies) {
      for (const key of [...Object.keys(body), 'unknown_field', '__proto__']) {
        for (const value of ODD) {
          const rest = Object.entries(body).filter(([name]) => name !== key)
          const pairs = rest.map(([name, given]) => `"${name}":${JSON.stringify(given)}`)
          const sent = `{${[...pairs, `"${key}":${value}`].join()}}`
          const reply = await ask(method, path, sent)
          expect(faultOf(reply, sent.slice(0, 200))).toBeUndefined()
          const status = Object.hasOwn(body, key) ? reply.status : 400
          expect({ asked: reply.asked, sent: sent.slice(0, 200), status: reply.status }).toMatchObject({ status })
        }
      }
    }
  })

  test('memory#118 what is large or long, but allowed', async () => {
    const { W, M, id } = await setUp()
    const code = (i: number): number => 0x4e00 + ((i * 7919) % 20_000)
    const value = Array.from({ length: 4096 }, (_, i) => String.fromCodePoint(code(i))).join('')
    const key = 'k'.repeat(128)
    expect((await api().call('PUT', `${M}/tags/${key}`, { value })).status).toBe(204)
    const tagged = { query: 'x', mode: 'keyword', filters: { tags: { [key]: value } } }
    expect((await api().call('POST', `${W}/recall`, tagged)).body.results).toMatchObject([{ memory_id: id }])
    const most = { name: 'x', auto_link_max_incoming_per_day: 2 ** 53 - 1 }
    expect((await api().call('POST', '/workspaces', most)).body).toMatchObject(most)
    expect((await ask('GET', `${W}/memories?limit=${'9'.repeat(40)}`)).status).toBe(200)
    expect((await ask('GET', `${W}/ledger?since=2026-01-01T00:00:00+05:30`)).status).toBe(200)
    const proof = Buffer.from(JSON.stringify({ prompt: 'x'.repeat(30_000) })).toString('base64url')
    expect((await post(`${W}/memories`, '{"content":"x"}', { 'Mem-Identity-Proof': proof })).status).toBe(201)
  })

  test('memory#118 what is nested too deep: 400', async () => {
    const { W } = await setUp()
    const values = [
      `{"a":${deep(500_000)}}`,
      String.raw`{"a":["\ud83d\ude00",${deep(500_000)}]}`,
      `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`,
    ]
    for (const value of values) {
      const bodies: [path: string, body: string][] = [
        ['/workspaces', `{"name":"x","meta":${value}}`],
        [`${W}/memories`, `{"content":${value}}`],
        [`${W}/memories`, `{"content":"x","unknown_field":${value}}`],
        [`${W}/agents`, `{"agent_id":"agent_deep","identity_provider":"opaque","identity_proof":${value}}`],
        [`${W}/recall`, `{"query":"x","filters":${value}}`],
      ]
      for (const [path, body] of bodies) {
        const replies = [await post(path, body), await post(path, body, { 'Idempotency-Key': 'deep' })]
        for (const reply of replies) expect(expectEnvelope(reply, 400, 'invalid_input')).toBeDefined()
      }
    }
  })

  test('memory#118 no header causes a 5xx', async () => {
    const { W, M } = await setUp()
    const names =
      'Mem-Agent-Id Mem-Identity-Provider Mem-Identity-Proof If-Match Idempotency-Key X-Mem-Workspace Content-Type'
    const emoji = Buffer.from('😀').toString('latin1')
    const values = ['', ' ', '*', '""', 'x'.repeat(201), '\u00e9', emoji, ';;;', 'W/', '\u0080', 'e30', 'bnVsbA']
    // A proof with U+0000 in it.
    values.push('eyJhIjoiXHUwMDAwIn0')
    for (const name of [...names.split(' '), 'If-None-Match', 'User-Agent', 'Accept', 'Expect-Nothing']) {
      for (const value of values) {
        expect(
          faultOf(await post(`${W}/memories`, '{"content":"x"}', { [name]: value }), `${name}: ${value}`),
        ).toBeUndefined()
        expect(
          faultOf(await post(`${M}:append`, '{"content":"x"}', { [name]: value }), `${name}: ${value}`),
        ).toBeUndefined()
      }
    }
  })

  test('memory#118 any media type is read as JSON; what is none is told what to send', async () => {
    const { W } = await setUp()
    const sent = (type: string) => post(`${W}/memories`, '{"content":"x"}', { 'Content-Type': type })
    for (const type of ['text/plain', 'application/json; charset=utf-8', 'application/x-www-form-urlencoded']) {
      expect((await sent(type)).status).toBe(201)
    }
    for (const type of ['', 'json']) {
      const reply = await sent(type)
      expect(expectEnvelope(reply, 400, 'invalid_input')).toEqual({ field: 'Content-Type' })
      expect(reply.text).toContain('send application/json')
    }
  })

  test('memory#118 what cannot be read as HTTP is answered by an envelope too', async () => {
    const { port } = new URL(api().url)
    const answerTo = async (bytes: string): Promise<[head: string, body: string]> => {
      const socket = connect(Number(port), '127.0.0.1')
      socket.write(bytes)
      const [head = '', body = ''] = (await text(socket)).split('\r\n\r\n')
      return [head, body]
    }
    const long = `GET /${'x'.repeat(70_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`
    for (const bytes of ['NOPE\r\n\r\n', 'GET / HTTP/9.9\r\nHost: localhost\r\n\r\n', long]) {
      const [head, body] = await answerTo(bytes)
      expect(head).toMatch(/^HTTP\/1\.1 400 /)
      expect(head).toMatch(/\r\nX-Request-ID: req_[0-9A-Z]{26}/i)
      expectEnvelope({ status: 400, text: body }, 400, 'invalid_input')
    }
    const [head, body] = await answerTo('GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n')
    expect(head).toMatch(/^HTTP\/1\.1 401 /)
    expectEnvelope({ status: 401, text: body }, 401, 'unauthorized')
  })

  test('memory#119 8 MiB + 1, bad UTF-8, array body, trailing garbage: 400', async () => {
    const ws = await api().workspace()
    const path = `/workspaces/${ws}/memories`
    const ofSize = (bytes: number): string => `{"content":"${' '.repeat(bytes - 14)}"}`
    for (const headers of [{}, { 'Transfer-Encoding': 'chunked' }]) {
      expect(Buffer.byteLength(ofSize(8 * MIB))).toBe(8 * MIB)
      expect((await post(path, ofSize(8 * MIB), headers)).status).toBe(201)
      expectEnvelope(await post(path, ofSize(8 * MIB + 1), headers), 400, 'invalid_input')
      expectEnvelope(await post(path, ofSize(20 * MIB), headers), 400, 'invalid_input')
    }
    const bad: (string | Uint8Array)[] = [
      Buffer.from('{"content":"caf\xe9"}', 'latin1'),
      Buffer.from([0x7b, 0x22, 0x63, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
      Buffer.from('{"content":"\xed\xa0\x80"}', 'latin1'),
      Buffer.from('{"content":"x"}', 'utf16le'),
      '{"content":"a\nb"}',
      '{"content":"x"} x',
      '',
      ' ',
    ]
    const lines = String.raw`
      [{"content":"x"}]
      {"content":"x"}{}
      {"content":"x"},
      {"content":"x"
      {'content':'x'}
      {content:"x"}
      {"content":"x",}
      "x"
      1
      null
      true
      NaN
      {}
      {"content":null}
      {"content":["x"]}
      {"content":"\ud800"}
      {"content":"\u0000"}
      {"content":"x","tags":{"\udc00":"v"}}
      {"content":"x","tags":{"k":"\u0000"}}
      {"content":"x","extra":1}
      {"content":"x","__proto__":{}}
      {"content":"x","chunker_config":{"a":{"b":1}}}`
    for (const body of [...bad, ...lines.trim().split(/\n\s+/)]) {
      expectEnvelope(await post(path, body), 400, 'invalid_input')
    }
    expectEnvelope(await ask('POST', path), 400, 'invalid_input')
    const good = ['{"content":"x","content":"y"}', ' {"content":"\u00e9\\ud83d\\ude00"}\n', '\ufeff{"content":"x"}']
    for (const body of good) expect((await post(path, body)).status).toBe(201)
    for (const type of ['application/json', 'application/json; charset=utf-8', 'text/plain', 'multipart/form-data']) {
      expect((await post(path, '{"content":"x"}', { 'Content-Type': type })).status).toBe(201)
    }
    expect((await api().call('GET', `${path}?include_content=false`)).body.memories).toHaveLength(2 + 3 + 4)
  })
})
