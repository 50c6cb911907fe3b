import { once } from 'node:events'
import { connect } from 'node:net'
import { Writable } from 'node:stream'
import { connect as connectSecurely } from 'node:tls'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createIdSource } from '../../src/base/ids.ts'
import { createListener } from '../../src/http/listener.ts'
import { adjustableClock } from '../support/memory-api.ts'
import { createAuthority } from '../support/certificates.ts'

const log = pino(new Writable({ write: (_chunk, _encoding, done) => done() }))

test.each(['http', 'https'])('over %s an end does not wait for a connection that has sent nothing', async (scheme) => {
  const tls = scheme === 'https' ? await (await createAuthority()).issue('server', ['127.0.0.1']) : undefined
  const listener = createListener({
    log,
    ids: createIdSource(adjustableClock()),
    timeoutMs: 60_000,
    allowedOrigins: [],
    tls,
  })
  const port = Number(new URL(await listener.listen({ port: 0, host: '127.0.0.1' })).port)
  const accepted = once(listener.server, tls ? 'secureConnection' : 'connection')
  const socket = tls
    ? connectSecurely({ port, host: '127.0.0.1', rejectUnauthorized: false })
    : connect(port, '127.0.0.1')
  const closed = once(socket, 'close')
  await accepted
  await listener.close()
  await closed
  expect(socket.bytesRead).toBe(0)
})
