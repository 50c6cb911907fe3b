import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createApp } from '../../../src/app.ts'
import { CHEAP, createPlace, expectOk, initialize, PASSWORD, startPlatform } from '../../platform/support.ts'
import { startFakeModel } from '../../support/fake-model/index.ts'
import { hasPostgres } from '../../support/postgres.ts'

test('gateway#81 while a stream runs on, whoever comes anew is told that the server goes', async () => {
  const place = await createPlace('sqlite')
  onTestFinished(() => place.remove())
  const file = join(place.directory, 'mem.yaml')
  writeFileSync(file, 'gateway: {allowed_hosts: ["127.0.0.1"]}\n')
  await initialize(place)
  const api = await startPlatform(place, { MEM_CONFIG: file })
  const fake = await startFakeModel({ provider: 'openai-compatible', script: { text: ['one', 'two'], silent: 1 } })
  onTestFinished(() => fake.close())
  expectOk(await api.call('POST', '//rest/v1/llm-gateway/credentials', { name: 'main', ...fake.credential }), 201)
  const chat = (signal?: AbortSignal): Promise<Response> =>
    fetch(`${api.url}/rest/v1/llm-gateway/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${api.admin}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'hi' }] }),
      ...(signal && { signal }),
    })
  const leaving = new AbortController()
  const running = await chat(leaving.signal)
  const stopped = api.stop()
  const refused = await chat()
  expect([refused.status, await refused.text()]).toEqual([503, expect.stringContaining('"code":"shutting_down"')])
  leaving.abort()
  await expect(running.text()).rejects.toThrow(/abort/)
  await stopped
  await expect(chat()).rejects.toThrow('fetch failed')
})

test.skipIf(!hasPostgres)('gateway#92 a process ends well though its database has gone before it', async () => {
  const place = await createPlace('postgres')
  await initialize(place)
  const config = place.config()
  const allowed = { ...config, gateway: { ...config.gateway, allowed_hosts: ['127.0.0.1'] } }
  const app = await createApp(allowed, { scrypt: CHEAP, services: ['platform', 'gateway'] })
  const url = await app.listen()
  const fake = await startFakeModel({ provider: 'openai-compatible', script: { status: 401 } })
  onTestFinished(() => fake.close())
  const post = (path: string, body: object, token = ''): Promise<Response> =>
    fetch(`${url}/rest/v1/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  const login = await post('platform/login', { email: 'ada@example.org', password: PASSWORD })
  const { token }: { token: string } = JSON.parse(await login.text())
  await post('llm-gateway/credentials', { name: 'main', ...fake.credential }, token)
  const messages = [{ role: 'user', content: 'hi' }]
  expect((await post('llm-gateway/v1/chat/completions', { model: 'm', messages }, token)).status).toBe(502)
  await place.remove()
  await expect(app.close()).resolves.toBeUndefined()
})
