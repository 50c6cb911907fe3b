import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createIdSource } from '../../src/base/ids.ts'
import { createListener } from '../../src/http/listener.ts'
import { mountKernel } from '../../src/kernel/routes/edge.ts'
import { Kernel } from '../../src/kernel/service.ts'
import { componentsOf } from '../../src/kernel/wiring.ts'
import { describeStores } from './support.ts'

const OBJECTIVE = { title: 'Stars', goal: 'Count', owner: { type: 'agent', id: 'ana' }, scope: { kind: 'a', id: 'b' } }

describeStores('a kernel on the listener of other services', (open) => {
  test('it answers below its prefix, and there alone: routes, errors, unknown paths, the token', async () => {
    const { store } = open()
    const log = pino({ level: 'silent' })
    const kernel = new Kernel({ store, log, components: componentsOf({}, true) })
    const ids = createIdSource(store)
    const app = createListener({ log, ids, timeoutMs: 1000, allowedOrigins: [] })
    app.setNotFoundHandler((_request, reply) => reply.code(404).send({ error_code: 'not_found' }))
    app.get('/healthz', async () => ({ ok: true }))
    mountKernel(app, kernel, { token: 'secret' })
    await app.ready()
    const headers = { authorization: 'Bearer secret', 'idempotency-key': 'one' }
    const made = await app.inject({ method: 'POST', url: '/api/v1/objectives', headers, payload: OBJECTIVE })
    expect([made.statusCode, made.body.endsWith('}\n')]).toEqual([201, true])
    const answers = async (
      method: 'GET' | 'DELETE',
      url: string,
      more: Record<string, string> = {},
    ): Promise<[number, unknown]> => {
      const reply = await app.inject({ method, url, headers: more })
      return [reply.statusCode, reply.json()]
    }
    expect(await answers('GET', '/api/v1/health')).toEqual([401, { error: 'unauthorized' }])
    expect(await answers('GET', '/api/v1/nothing')).toEqual([401, { error: 'unauthorized' }])
    expect(await answers('GET', '/api/v1/nothing', headers)).toEqual([404, { error: expect.any(String) }])
    expect(await answers('GET', '/api/v1', headers)).toEqual([404, { error: expect.any(String) }])
    expect(await answers('DELETE', '/api/v1/objectives', headers)).toEqual([405, { error: expect.any(String) }])
    expect(await answers('GET', '/healthz')).toEqual([200, { ok: true }])
    expect(await answers('GET', '/api/v2/health')).toEqual([404, { error_code: 'not_found' }])
    expect(await answers('GET', '/health')).toEqual([404, { error_code: 'not_found' }])
    await app.close()
  })

  test('a key is of the route alone, whatever the prefix: it holds for an embedder over the same store', async () => {
    const { store } = open()
    const log = pino({ level: 'silent' })
    const kernel = new Kernel({ store, log, components: componentsOf({}, true) })
    const statuses: number[] = []
    for (const prefix of ['/api/v1', '/kernel']) {
      const app = createListener({ log, ids: createIdSource(store), timeoutMs: 1000, allowedOrigins: [] })
      mountKernel(app, kernel, { prefix })
      const headers = { 'idempotency-key': 'of two' }
      const reply = await app.inject({ method: 'POST', url: `${prefix}/objectives`, headers, payload: OBJECTIVE })
      statuses.push(reply.statusCode)
      await app.close()
    }
    expect(statuses).toEqual([201, 200])
  })
})
