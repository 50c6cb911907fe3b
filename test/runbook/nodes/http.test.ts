import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { createNodeRegistry } from '../../../src/runbook/registry.ts'
import type { RunOptions } from '../../../src/runbook/run/options.ts'
import { freePort } from '../../support/ports.ts'
import { found, node, output, run } from '../support.ts'
import { attributes, recorder, type Reply } from './recorder.ts'

const send = (values: Record<string, unknown>, options: Partial<RunOptions> = {}) =>
  run(`node http n {\n${attributes(values)}\n}`, options)

async function failure(values: Record<string, unknown>, options: Partial<RunOptions> = {}) {
  return node(await send(values, options), 'n')?.error
}

describe('requests', () => {
  test('runbook#89 methods, query, headers and JSON', async () => {
    const { url, requests } = await recorder(() => ({ status: 201, body: { id: 1 }, headers: { 'x-a': ['1', '2'] } }))
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) await send({ url, method })
    expect(requests.map(({ method }) => method)).toEqual(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
    const report = await send({
      url: `${url}/a?x=1`,
      method: 'POST',
      query: { q: ['a b', 2], none: null },
      headers: { 'X-Count': 3, 'X-Flag': true, 'X-None': null },
      body: { b: [1, null], a: 'x' },
      auth: { username: 'me', password: 'pa55word' },
    })
    expect(requests.at(-1)).toMatchObject({
      method: 'POST',
      url: '/a?x=1&q=a+b&q=2',
      headers: {
        'x-count': '3',
        'x-flag': 'true',
        'content-type': 'application/json',
        authorization: `Basic ${Buffer.from('me:pa55word').toString('base64')}`,
      },
      body: '{"a":"x","b":[1,null]}',
    })
    expect(requests.at(-1)?.headers).not.toHaveProperty('x-none')
    expect(output(report, 'n')).toMatchObject({
      statusCode: 201,
      status: 'Created',
      headers: { 'x-a': '1, 2', 'content-type': 'application/json' },
      body: { id: 1 },
      redirects: 0,
    })
  })

  test('runbook#89 text, and a Content-Type that wins', async () => {
    const { url, requests } = await recorder(() => ({
      body: '12345678901234567890',
      headers: { 'set-cookie': ['a=1', 'b=2'] },
    }))
    const report = await send({ url, method: 'POST', body: 'plain text' })
    expect(output(report, 'n')).toMatchObject({
      body: '12345678901234567890',
      headers: { 'set-cookie': ['a=1', 'b=2'] },
    })
    await send({ url, method: 'POST', body: '{"a": 1}' })
    await send({ url, method: 'POST', body: '<a/>', headers: { 'Content-Type': 'text/xml' } })
    expect(requests.map(({ headers, body }) => [headers['content-type'], body])).toEqual([
      ['text/plain;charset=UTF-8', 'plain text'],
      ['application/json', '{"a": 1}'],
      ['text/xml', '<a/>'],
    ])
    expect(output(await send({ url, responseType: 'base64' }), 'n')).toMatchObject({
      body: Buffer.from('12345678901234567890').toString('base64'),
    })
    expect((await failure({ url, body: 'x' }))?.code).toBe('config_invalid')
  })

  test('runbook#89 multipart upload of a file below the workflow', async () => {
    const { url, requests } = await recorder()
    const directory = mkdtempSync(join(tmpdir(), 'mem-http-'))
    writeFileSync(join(directory, 'a.txt'), 'file content')
    const guard = { allowPaths: [directory] }
    const path = join(directory, 'a.txt')
    await send({ url, method: 'POST', file: path, fileField: 'doc', body: { note: 'hi', n: 1 } }, { guard })
    const form = await new Response(requests[0]?.body, {
      headers: { 'content-type': requests[0]?.headers['content-type'] ?? '' },
    }).formData()
    expect([...form.keys()]).toEqual(['n', 'note', 'doc'].toSorted(byGivenOrder(form)))
    expect(form.get('note')).toBe('hi')
    const file = form.get('doc') as File
    expect([file.name, await file.text()]).toEqual(['a.txt', 'file content'])
    expect((await failure({ url, method: 'POST', file: '../a.txt' }, { guard }))?.code).toBe('config_invalid')
    expect((await failure({ url, method: 'POST', file: '/etc/hostname' }, { guard }))?.code).toBe('config_invalid')
  })

  test('runbook#90 an unexpected status keeps the answer; ["*"] takes all', async () => {
    const { url } = await recorder(({ url: path }) =>
      path === '/broken'
        ? { body: '{"a":', headers: { 'content-type': 'application/json' } }
        : { status: Number(path.slice(1)), body: { why: 'gone' }, headers: { 'retry-after': '2' } },
    )
    expect(await failure({ url: `${url}/404` })).toMatchObject({
      code: 'http_status',
      class: 'client_error',
      details: { statusCode: 404, body: { why: 'gone' }, headers: { 'retry-after': '2' } },
    })
    expect((await failure({ url: `${url}/503` }))?.class).toBe('server_error')
    expect((await failure({ url: `${url}/429` }))?.code).toBe('rate_limited')
    expect(output(await send({ url: `${url}/404`, expectStatus: ['*'] }), 'n')).toMatchObject({ statusCode: 404 })
    expect((await send({ url: `${url}/404`, expectStatus: ['2xx', 404] })).status).toBe('succeeded')
    expect((await failure({ url: `${url}/200`, expectStatus: [201] }))?.code).toBe('http_status')
    expect((await failure({ url: `${url}/broken` }))?.code).toBe('data_invalid')
    expect(output(await send({ url: `${url}/broken`, responseType: 'text' }), 'n')).toMatchObject({ body: '{"a":' })
  })
})

const byGivenOrder = (form: FormData) => (a: string, b: string) =>
  [...form.keys()].indexOf(a) - [...form.keys()].indexOf(b)

describe('safety', () => {
  test('runbook#103 metadata addresses: direct, by name, mapped, decimal, by redirect', async () => {
    const { url } = await recorder(() => ({ status: 302, headers: { location: 'http://169.254.169.254/latest' } }))
    const registry = createNodeRegistry({
      resolve: (host) => Promise.resolve(host === 'evil.test' ? ['169.254.169.254'] : []),
    })
    for (const target of [
      'http://169.254.169.254/',
      'http://2852039166/',
      'http://0xa9fea9fe/',
      'http://[::ffff:169.254.169.254]/',
      'http://[64:ff9b::a9fe:a9fe]/',
      'http://[fe80::1]/',
      'http://[fd00:ec2::254]/',
      'http://100.100.100.200/',
      'http://metadata.google.internal/',
      'http://METADATA.google.internal./',
      'http://evil.test/',
      url,
    ]) {
      expect([target, await failure({ url: target }, { registry })]).toMatchObject([
        target,
        { code: 'address_refused', class: 'refused' },
      ])
    }
  })

  test('runbook#104 private networks, rebinding, allowed hosts', async () => {
    const { url, requests } = await recorder()
    const port = new URL(url).port
    const denied = { denyPrivateNetworks: true }
    for (const target of [
      url,
      'http://10.0.0.1/',
      'http://[::1]/',
      'http://[fd12::1]/',
      'http://100.64.0.1',
      'http://0/',
    ]) {
      expect((await failure({ url: target }, { guard: denied }))?.code).toBe('address_refused')
    }
    const rebinding = createNodeRegistry({ resolve: () => Promise.resolve(['127.0.0.1']) })
    expect((await failure({ url: `http://public.test:${port}/` }, { guard: denied, registry: rebinding }))?.code).toBe(
      'address_refused',
    )
    expect(requests).toEqual([])
    for (const host of ['127.0.0.1', `127.0.0.1:${port}`]) {
      expect((await send({ url }, { guard: { ...denied, allowHosts: [host] } })).status).toBe('succeeded')
    }
    expect((await failure({ url }, { guard: { ...denied, allowHosts: ['127.0.0.1:1'] } }))?.code).toBe(
      'address_refused',
    )
    const never = { allowHosts: ['169.254.169.254'] }
    expect((await failure({ url: 'http://169.254.169.254/' }, { guard: never }))?.code).toBe('address_refused')
    const named = createNodeRegistry({ resolve: () => Promise.resolve(['::1', '127.0.0.1']) })
    expect((await send({ url: `http://service.test:${port}/` }, { registry: named })).status).toBe('succeeded')
  })

  test('runbook#105 redirects: a bound, methods, and credentials for one origin', async () => {
    const other = await recorder()
    const first = await recorder(({ url: path }) => redirects(path, other.url))
    expect((await failure({ url: `${first.url}/endless` }))?.code).toBe('too_many_redirects')
    expect(first.requests).toHaveLength(6)
    await send({
      url: `${first.url}/other`,
      method: 'POST',
      body: 'x',
      auth: { bearer: 'token-12345' },
      headers: { Cookie: 'a=1', 'X-Kept': 'yes' },
    })
    expect(other.requests[0]).toMatchObject({ method: 'GET', body: '', headers: { 'x-kept': 'yes' } })
    expect(other.requests[0]?.headers).not.toHaveProperty('authorization')
    expect(other.requests[0]?.headers).not.toHaveProperty('cookie')
    expect(other.requests[0]?.headers).not.toHaveProperty('content-type')
    const report = await send({
      url: `${first.url.replace('//', '//user:secret%21@')}/same`,
      method: 'PUT',
      body: 'x',
    })
    expect(first.requests.at(-1)).toMatchObject({
      url: '/end',
      method: 'PUT',
      body: 'x',
      headers: { authorization: `Basic ${Buffer.from('user:secret!').toString('base64')}` },
    })
    expect(output(report, 'n')).toMatchObject({ url: `${first.url}/end`, redirects: 1 })
    expect(output(await send({ url: `${first.url}/same`, maxRedirects: 0, expectStatus: ['3xx'] }), 'n')).toMatchObject(
      {
        statusCode: 307,
      },
    )
    expect((await failure({ url: `${first.url}/file` }))?.code).toBe('config_invalid')
  })

  test('runbook#105 a redirect never gives up encryption', async () => {
    const asked: string[] = []
    const fetch = ((url: URL) => {
      asked.push(url.href)
      const location = url.protocol === 'https:' ? 'http://other.test/' : 'https://other.test/'
      return Promise.resolve(new Response(null, { status: 302, headers: { location } }))
    }) as unknown as typeof globalThis.fetch
    const registry = createNodeRegistry({ fetch, resolve: () => Promise.resolve(['192.0.2.1']) })
    const error = await failure({ url: 'https://first.test/', auth: { bearer: 'token-12345' } }, { registry })
    expect(error).toMatchObject({
      code: 'refused',
      class: 'refused',
      message: expect.stringContaining('from https to http'),
    })
    expect(asked).toEqual(['https://first.test/'])
  })

  test.each([
    ['http', { url: 'URL' }],
    ['slack', { webhookUrl: 'URL', text: 'x' }],
    ['discord', { webhookUrl: 'URL', content: 'x' }],
    ['teams', { webhookUrl: 'URL', text: 'x' }],
    ['ai', { provider: 'openai-compatible', baseUrl: 'URL', model: 'm', prompt: 'x' }],
    ['ai', { provider: 'ollama', ollamaUrl: 'URL', model: 'm', prompt: 'x' }],
    ['vectordb', { provider: 'mem', endpoint: 'URL', workspace: 'w', query: 'x' }],
    ['vectordb', { connectionString: 'postgres://u:p@HOST/d', table: 't', vector: [1] }],
    ['email', { host: 'HOST', to: 'a@b.test', from: 'a@b.test', subject: 'x', body: 'y' }],
  ])('runbook#103 %s never asks a metadata service, also when it is allowed: %j', async (type, values) => {
    for (const host of ['169.254.169.254', 'metadata.google.internal', 'evil.test']) {
      const registry = createNodeRegistry({ resolve: () => Promise.resolve(['169.254.169.254']) })
      const config = JSON.stringify(values).replace('URL', `http://${host}/`).replace('HOST', host)
      const guard = { allowHosts: [host, `${host}:80`] }
      const services = { memory: { endpoint: `http://${host}/` } }
      const report = await run(`node ${type} n {\n${attributes(JSON.parse(config))}\n}`, { registry, guard, services })
      expect([host, node(report, 'n')?.error?.code]).toEqual([host, 'address_refused'])
    }
  })

  const redirects = (path: string, other: string): Reply => {
    const to = { '/endless': '/endless', '/other': other, '/same': '/end', '/file': 'file:///etc/passwd' }[path]
    if (to === undefined) return { body: 'end' }
    return { status: path === '/same' ? 307 : 302, headers: { location: to } }
  }

  test('runbook#106 a large answer, and a small one that unpacks large', async () => {
    const { url } = await recorder(({ url: path }) =>
      path === '/bomb'
        ? { body: gzipSync(Buffer.alloc(50_000_000)), headers: { 'content-encoding': 'gzip' } }
        : { body: Buffer.alloc(11 * 1024 * 1024, 'a') },
    )
    expect((await failure({ url }))?.code).toBe('response_too_large')
    expect((await failure({ url: `${url}/bomb` }))?.code).toBe('response_too_large')
    expect((await send({ url, maxResponseBytes: 12 * 1024 * 1024, responseType: 'text' })).status).toBe('succeeded')
  })

  test('runbook#107 line breaks in headers and reserved headers: nothing sent', async () => {
    const { url, requests } = await recorder()
    for (const headers of [
      { 'X-A': 'a\r\nX-B: b' },
      { 'X\nA': 'a' },
      { 'X-A': 'a\u0000' },
      { Host: 'x' },
      { Connection: 'close' },
    ]) {
      expect((await failure({ url, headers }))?.code).toBe('header_invalid')
    }
    expect((await failure({ url, auth: { bearer: 'a\nb' } }))?.code).toBe('header_invalid')
    expect(requests).toEqual([])
  })

  test('runbook#108 credentials are in no report, also not in an error', async () => {
    const { url } = await recorder(({ headers }) => ({ status: 401, body: { sent: headers.authorization } }))
    const report = await send({ url, auth: { bearer: 'very-secret-token' } })
    expect(JSON.stringify(report)).not.toContain('very-secret-token')
    expect(node(report, 'n')?.error?.details).toMatchObject({ body: { sent: 'Bearer ***' } })
    const literal = found('node http n {\nurl = "https://example.com"\nauth = { bearer = "abcdef" }\n}')
    expect(literal.map(({ code }) => code)).toContain('RB219')
  })

  test('a server that is not there, a name that does not exist, a slow answer', async () => {
    const gone = `127.0.0.1:${await freePort()}`
    expect(await failure({ url: `http://${gone}/` })).toMatchObject({
      code: 'network_error',
      class: 'network',
      message: `no connection to ${gone}: ECONNREFUSED`,
    })
    const registry = createNodeRegistry({ resolve: () => Promise.reject(new Error('ENOTFOUND')) })
    expect((await failure({ url: 'http://nowhere.test' }, { registry }))?.code).toBe('network_error')
    expect((await failure({ url: 'ftp://{{run.id}}' }))?.code).toBe('config_invalid')
    expect((await failure({ url: '{{run.id}}' }))?.code).toBe('config_invalid')
    const { url } = await recorder(() => ({ status: 503, headers: { 'retry-after': '0' } }))
    const report = await run(`node http n {\nurl = "${url}"\nretry {\nattempts = 3\nbackoff = "1ms"\n}\n}`)
    expect(node(report, 'n')?.attempts).toHaveLength(3)
  })
})
