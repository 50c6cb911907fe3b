import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createPlace, expectOk, initialize, startPlatform } from '../../platform/support.ts'
import { startFakeModel } from '../../support/fake-model/index.ts'
import { hasPostgres } from '../../support/postgres.ts'

/** Stands before a server, and takes it away when told. */
async function startGate(target: URL) {
  const sockets = new Set<Socket>()
  let state: 'open' | 'shut' | 'silent' = 'open'
  const server = createServer((near) => {
    sockets.add(near)
    near.on('error', () => undefined)
    if (state === 'shut') return near.destroy()
    if (state === 'silent') return near.resume()
    const far = connect(Number(target.port), target.hostname)
    sockets.add(far)
    far.on('error', () => undefined)
    near.pipe(far).pipe(near)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const become = (next: typeof state): void => {
    state = next
    for (const socket of sockets) socket.destroy()
    sockets.clear()
  }
  onTestFinished(() => {
    server.close()
    become('shut')
  })
  const { port } = server.address() as AddressInfo
  return { port, become }
}

test.skipIf(!hasPostgres)(
  'gateway#92 with the database away a session is told to come again, virtual keys are served, and both are when it is back',
  async () => {
    const place = await createPlace('postgres')
    onTestFinished(() => place.remove())
    await initialize(place)
    const dsn = new URL(place.env['MEM_METADATA_DSN'] ?? '')
    const gate = await startGate(new URL(dsn))
    dsn.port = String(gate.port)
    const file = join(place.directory, 'mem.yaml')
    writeFileSync(file, 'gateway: {allowed_hosts: ["127.0.0.1"]}\n')
    const api = await startPlatform(place, { MEM_CONFIG: file, MEM_METADATA_DSN: dsn.href })
    const fake = await startFakeModel({ provider: 'openai-compatible', script: { text: 'hi' } })
    onTestFinished(() => fake.close())
    const manage = (path: string, body: object) => api.call('POST', `//rest/v1/llm-gateway/${path}`, body)
    expectOk(await manage('credentials', { name: 'main', ...fake.credential }), 201)
    const { token: key } = expectOk(await manage('keys', { name: 'machine' }), 201)
    // Sessions that no call has used: one that is known is known for a second more.
    const [first, second] = await Promise.all([api.login('ada@example.org'), api.login('ada@example.org')])
    const call = async (path: string, token: string) => {
      const body = { model: 'm', max_tokens: 5, input: 'hi', messages: [{ role: 'user', content: 'hi' }] }
      const response = await fetch(`${api.url}/rest/v1/llm-gateway/v1/${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      return { status: response.status, headers: response.headers, body: JSON.parse(await response.text()) }
    }
    const error = { message: expect.stringContaining('try again soon'), code: 'metering_unavailable' }

    gate.become('shut')
    for (const path of ['chat/completions', 'embeddings', 'responses']) {
      const { status, headers, body } = await call(path, first)
      expect([status, headers.get('retry-after'), headers.get('x-should-retry')]).toEqual([503, '1', null])
      expect(body).toEqual({ error: { ...error, type: 'server_error', param: null } })
    }
    for (const path of ['messages', 'messages/count_tokens']) {
      const { status, headers, body } = await call(path, first)
      expect([status, headers.get('retry-after')]).toEqual([503, '1'])
      expect(body).toMatchObject({ type: 'error', error: { ...error, type: 'overloaded_error' } })
    }
    expect((await call('chat/completions', key)).status).toBe(200)
    // A database that takes connections and says nothing is away, too.
    gate.become('silent')
    expect((await call('chat/completions', first)).body).toMatchObject({ error })
    expect((await call('messages', key)).status).toBe(200)
    // Nor is what waits for it taken for a body that comes late.
    expect(await manage('route', { model: 'm' })).toMatchObject({
      status: 500,
      body: { error: { code: 'internal', details: { reason: 'timeout' } } },
    })

    gate.become('open')
    expect((await call('chat/completions', first)).status).toBe(200)
    expect((await call('messages', second)).status).toBe(200)
    await api.stop()
  },
)
