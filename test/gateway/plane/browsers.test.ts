import { expect, test } from 'vitest'
import { expectOk, describeInPlaces, initialize, startPlatform } from '../../platform/support.ts'
import { send } from '../../support/raw-request.ts'

const PATH = '/rest/v1/llm-gateway/v1/models'
const PAGE = 'https://app.example'

describeInPlaces('pages of other sites', (place) => {
  test('a page of a listed origin may call with its key, no other; without a list there are no CORS headers', async () => {
    await initialize(place())
    const listed = await startPlatform(place(), { MEM_ALLOWED_ORIGINS: PAGE })
    const { token } = expectOk(await listed.call('POST', '//rest/v1/llm-gateway/keys', { name: 'page' }), 201)
    const ask = { origin: PAGE, 'access-control-request-method': 'POST' }
    const asked = 'authorization,content-type,x-mem-cache,x-stainless-lang'
    const preflight = await send(listed.url + PATH, {
      method: 'OPTIONS',
      headers: { ...ask, 'access-control-request-headers': asked },
    })
    expect(preflight).toMatchObject({
      status: 204,
      headers: { vary: 'Origin', 'access-control-allow-origin': PAGE, 'access-control-allow-headers': asked },
    })
    const authorization = `Bearer ${token}`
    const answer = await send(listed.url + PATH, { headers: { origin: PAGE, authorization } })
    expect(answer).toMatchObject({
      status: 200,
      headers: { vary: 'Origin', 'access-control-allow-origin': PAGE, 'access-control-expose-headers': '*' },
    })
    expect(answer.headers['x-request-id']).toMatch(/./)
    // Refusals too must be readable.
    expect(await send(listed.url + PATH, { headers: { origin: PAGE } })).toMatchObject({
      status: 401,
      headers: { 'access-control-allow-origin': PAGE },
    })
    for (const foreign of ['https://evil.example', 'null']) {
      const reply = await send(listed.url + PATH, { headers: { origin: foreign, authorization } })
      expect([reply.status, reply.headers.vary]).toEqual([200, 'Origin'])
      expect(reply.headers).not.toHaveProperty('access-control-allow-origin')
    }
    await listed.stop()

    const plain = await startPlatform(place())
    const reply = await send(plain.url + PATH, { headers: { origin: PAGE, authorization } })
    expect([reply.status, reply.headers.vary]).toEqual([200, undefined])
    expect((await send(plain.url + PATH, { method: 'OPTIONS', headers: ask })).status).toBe(401)
    await plain.stop()
  })
})
