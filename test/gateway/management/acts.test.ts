import { expect, test } from 'vitest'
import { CallActs } from '../../../src/gateway/acts.ts'
import type { FinishedAttempt } from '../../../src/gateway/plane/parts.ts'
import { expectOk } from '../../platform/support.ts'
import { usageRecord } from '../observe/samples.ts'
import { credential, next, routing } from '../routing/support.ts'
import { describeGateway } from '../support.ts'

describeGateway('what calls tell of credentials', (api) => {
  test('a connection that failed is told apart from a silence and from an answer', async () => {
    const { call, management } = api()
    const body = { provider: 'openai', name: 'called', api_key: 'sk-test-0123456789abcdef' }
    const { id } = expectOk(await call('POST', '/credentials', body), 201)
    const { select, caller } = routing({ credentials: [credential(id, { version: 1 })] })
    const candidate = next(select('gpt-5'))
    if (!candidate) throw new Error('there is no candidate')
    const acts = new CallActs(management.audit, management.health)
    const errorAfter = async (ending: Pick<FinishedAttempt, 'class' | 'status' | 'unreached'>): Promise<unknown> => {
      const times = { number: 1, startedAt: 0, durationMs: 1, firstChunkMs: undefined }
      const attempts = [{ candidate, ...times, origin: undefined, facts: undefined, ...ending }]
      const told = { record: usageRecord(), caller: caller(), request: undefined, traceparent: undefined }
      acts.finished({ ...told, attempts, cache: undefined })
      await management.health.flush()
      const { code, status, message } = expectOk(await call('GET', `/credentials/${id}`)).last_error
      return [code, status, message]
    }
    expect(await errorAfter({ class: 'connect', status: undefined })).toEqual([
      'connect',
      undefined,
      'the provider cannot be reached',
    ])
    const unreached = 'the provider cannot be reached (ECONNREFUSED)'
    expect(await errorAfter({ class: 'connect', status: undefined, unreached })).toEqual([
      'connect',
      undefined,
      unreached,
    ])
    expect(await errorAfter({ class: 'transient', status: undefined })).toEqual([
      'transient',
      undefined,
      'the provider said nothing in time',
    ])
    expect(await errorAfter({ class: 'rate', status: 429 })).toEqual(['rate', 429, 'the provider answered 429'])
  })

  test('gateway#33 a refused key is told with the status of the provider', async () => {
    const { call, management } = api()
    const body = { provider: 'openai', name: 'refused', api_key: 'sk-test-0123456789abcdef' }
    const { id } = expectOk(await call('POST', '/credentials', body), 201)
    const acts = new CallActs(management.audit, management.health)
    acts.rejected(credential(id), Date.now() + 60_000, { status: 403, message: 'not yours' })
    await management.health.flush()
    expect(expectOk(await call('GET', `/credentials/${id}`)).last_error).toMatchObject({
      code: 'upstream_credentials_rejected',
      status: 403,
      message: 'not yours',
    })
  })
})
