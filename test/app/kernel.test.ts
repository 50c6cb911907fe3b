import { symlinkSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { KernelClient } from '../../src/client/index.ts'
import { ConfigError } from '../../src/config/errors.ts'
import { checkStart } from '../../src/config/start-matrix.ts'
import { configError, makeWorkspace } from '../config/workspace.ts'
import { startMemoryApi, type ApiOptions, type MemoryApi } from '../support/memory-api.ts'
import { freePort } from '../support/ports.ts'
import { startScriptedModel } from '../support/scripted-model.ts'

const MANIFEST = {
  id: 'ana',
  version: '1.0.0',
  displayName: 'Ana',
  purpose: 'Counts',
  systemPrompt: 'Count.',
  authority: { maximumRisk: 'read' as const, maxConcurrentRuns: 1 },
}

const started: MemoryApi[] = []
afterEach(async () => void (await Promise.all(started.splice(0).map((api) => api.stop()))))

async function start(options: Omit<ApiOptions, 'dialect'>): Promise<MemoryApi> {
  const api = await startMemoryApi({ dialect: 'sqlite', ...options })
  started.push(api)
  return api
}

const statusOf = async (url: string, token?: string): Promise<number> =>
  (await fetch(url, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } })).status

/** `fetch` sends no other Host. */
const statusFor = (url: string, host: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    request(url, { headers: { host } }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
      .on('error', reject)
      .end()
  })

test('with a token of its own the kernel opens to that alone, and the console has no pages of it', async () => {
  const { url } = await start({ env: { MEM_API_KEY: 'server-key', KERNEL_API_TOKEN: 'kernel-token' } })
  expect(await statusOf(`${url}/api/v1/health`, 'kernel-token')).toBe(200)
  expect(await statusOf(`${url}/api/v1/health`, 'server-key')).toBe(401)
  expect(await statusOf(`${url}/v1/workspaces`, 'kernel-token')).toBe(401)
  const { url: open } = await start({ env: { KERNEL_API_TOKEN: 'kernel-token' } })
  expect(await statusOf(`${open}/ui/`)).toBe(200)
  expect(await statusOf(`${open}/ui/kernel/runs`)).toBe(404)
  expect(await (await fetch(`${open}/ui/`)).text()).not.toContain('/ui/kernel/')
})

test('an address of its own: the kernel is there and nowhere else, behind the same rules', async () => {
  const own = `127.0.0.1:${await freePort()}`
  const { url } = await start({ file: `kernel: {api: {listenAddr: "${own}"}}` })
  expect(await statusOf(`http://${own}/api/v1/health`)).toBe(200)
  expect(await statusOf(`http://${own}/v1/workspaces`)).toBe(404)
  expect(await statusOf(`${url}/api/v1/health`)).toBe(404)
  expect(await statusFor(`http://${own}/api/v1/health`, 'mem.example')).toBe(403)
})

test('an address that others reach needs a key or a token; a person at this machine approves on loopback alone', async () => {
  const { load } = makeWorkspace({ 'mem.yaml': 'kernel: {api: {listenAddr: ":7801"}}' })
  const both = { memory: true, kernel: true }
  expect(configError(() => checkStart(load(), both))).toMatchObject({
    key: 'server.api_key',
    message: expect.stringContaining(':7801'),
  })
  expect(checkStart(load({ KERNEL_API_TOKEN: 'token' }), both)).toHaveLength(1) // of memory, on loopback
  expect(checkStart(load({ MEM_API_KEY: 'key' }), both)).toEqual([])
  expect(() => checkStart(load(), { memory: true, kernel: false })).not.toThrow()
  for (const file of ['kernel: {api: {listenAddr: ":7801"}}', 'server: {addr: ":7801"}']) {
    const flags = { 'standalone-operator': true }
    await expect(start({ file, flags, env: { MEM_API_KEY: 'key', MEM_ADDR: '' } })).rejects.toThrow(
      /loopback address, not :7801/,
    )
  }
})

/** What comes back for bytes that are no request: status, media type, and the body as sent. */
async function sendRaw(url: string, bytes: string): Promise<[number, string | undefined, string]> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.write(bytes)
  const [head = '', body = ''] = (await text(socket)).split('\r\n\r\n')
  return [Number(head.split(' ')[1]), /content-type: (.*)/i.exec(head)?.[1], body]
}

test('what is no request is refused in the envelope of whom it was for', async () => {
  const own = `http://127.0.0.1:${await freePort()}`
  const { url: shared } = await start({})
  const { url: other } = await start({ file: `kernel: {api: {listenAddr: "${new URL(own).host}"}}` })
  const JSON_TYPE = 'application/json; charset=utf-8'
  const kernels = (reply: unknown): unknown => {
    expect(reply).toEqual([400, JSON_TYPE, expect.stringMatching(/^\{"error":"[^"]+"\}\n$/)])
    return reply
  }
  const memorys = [400, JSON_TYPE, expect.stringContaining('"error_code":"invalid_input"')]
  const badLength = (path: string): string => `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: many\r\n\r\n`
  const badHeader = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\nX Y\r\n\r\n`
  const tooLong = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\nX: ${'y'.repeat(200_000)}\r\n\r\n`
  for (const bytes of [badLength('/x'), badHeader('/x'), tooLong('/api/v1/health'), 'HELLO\r\n\r\n']) {
    kernels(await sendRaw(own, bytes))
  }
  for (const bytes of [badLength('/api/v1/objectives'), badHeader('/api/v1/health?a=b')]) {
    kernels(await sendRaw(shared, bytes))
    expect(await sendRaw(other, bytes)).toEqual(memorys)
  }
  for (const bytes of [badLength('/v1/workspaces'), badHeader('/api/v10'), 'HELLO\r\n\r\n']) {
    expect(await sendRaw(shared, bytes)).toEqual(memorys)
  }
})

test('kernel2#87 a credential file that others may read, that is a link, empty or not there: no start, exit 78', async () => {
  const { directory, write } = makeWorkspace()
  write('open', 'secret', 0o644)
  write('empty', '', 0o600)
  write('good', 'secret', 0o600)
  symlinkSync(join(directory, 'good'), join(directory, 'link'))
  const startWith = (file: string): Promise<MemoryApi> => {
    const credential = { scope: { kind: 'a', id: 'b' }, kind: 'bearer', id: 'login', displayName: 'Login', file }
    const context = { apiVersion: 'kernel/v1alpha1', kind: 'StandaloneContext', credentials: [credential] }
    return start({ flags: { 'kernel-context': write('context.yaml', JSON.stringify(context)) } })
  }
  for (const [file, why] of [
    ['open', 'may be read by others: run chmod 600'],
    ['link', 'must not be a symbolic link'],
    ['empty', 'is empty'],
    ['none', 'cannot be read: ENOENT'],
  ] as const) {
    const error: unknown = await startWith(file).catch((failure: unknown) => failure)
    expect(error).toBeInstanceOf(ConfigError)
    expect(error).toMatchObject({ key: '--kernel-context', message: expect.stringContaining(why) })
  }
  const { url } = await startWith('good')
  expect(await statusOf(`${url}/api/v1/health`)).toBe(200)
})

test('the prices of the gateway count what the agents of a server spend', async () => {
  const model = await startScriptedModel()
  onTestFinished(() => model.close())
  model.script('*', [{ outcome: { status: 'completed' } }])
  const { url } = await start({
    env: { KERNEL_MODEL_BASE_URL: model.baseUrl, KERNEL_MODEL_NAME: 'home', KERNEL_MODEL_API_KEY: 'key' },
    file: 'gateway: {prices: [{provider: openai, model: home, usd_per_million: {input: 2, output: 3.5}}]}',
  })
  const kernel = new KernelClient(url)
  const by = { actorType: 'user', actorId: 'una' }
  await kernel.agents.install(
    { ...by, manifest: MANIFEST, deployment: { id: 'ana', environment: 'here' } },
    { idempotencyKey: 'ana' },
  )
  const fields = { owner: { type: 'agent' as const, id: 'ana' }, goal: 'Count', budget: { maxCostMicros: 1_000_000 } }
  const { run } = await kernel.runs.create(fields, { idempotencyKey: 'count' })
  // 100 tokens in, 10 out.
  await vi.waitFor(
    async () =>
      expect(await kernel.runs.get(run.id)).toMatchObject({ status: 'completed', budgetUsage: { costMicros: 235 } }),
    20_000,
  )
})
