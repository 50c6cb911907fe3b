import { once } from 'node:events'
import { expect, test } from 'vitest'
import { classes, pair } from './pair.ts'
import { CHAT, FRAMES, json, SESSION, sse, TOKEN, USER, type Script } from './support.ts'

test.each(['before the answer', 'before content', 'in the stream'])(
  'gateway#41 a client that goes %s takes the call along',
  async (when) => {
    const script: Script =
      when === 'before the answer'
        ? () => undefined
        : when === 'before content'
          ? sse([FRAMES.start], false)
          : sse([FRAMES.start, FRAMES.text('Hel')], false)
    const { open, upstreams, record } = await pair(script)
    const controller = new AbortController()
    const opened = open('chat/completions', { ...CHAT, stream: true }, { signal: controller.signal })
    const seen = await upstreams[0].next()
    if (when === 'in the stream') await once(await opened, 'data')
    else opened.catch(() => undefined)
    controller.abort()
    // The clock of the rig stands: no time limit does this.
    const [kept] = await Promise.all([record(), seen.closed])
    expect(kept).toMatchObject({ outcome: 'client_closed', status: 499 })
    expect(classes(kept)).toEqual(['closed'])
    expect(upstreams[1].seen).toEqual([])
    expect(kept.output_tokens).toBe(when === 'in the stream' ? 1 : null)
  },
)

test('gateway#41 a client that goes while its body comes, or while it waits, leaves a record', async () => {
  const { port, record, upstreams } = await pair(json())
  const { connect } = await import('node:net')
  const socket = connect(port, '127.0.0.1')
  socket.write(
    `POST /rest/v1/llm-gateway/v1/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer mvk_${'a'.repeat(43)}\r\nContent-Length: 100\r\n\r\n{`,
  )
  await once(socket, 'connect')
  setImmediate(() => socket.destroy())
  expect(await record()).toMatchObject({ outcome: 'client_closed', surface: 'messages', model_requested: '' })
  expect(upstreams[0].seen).toEqual([])
})

test('gateway#41 a client that goes while its session is looked up leaves a record, and nothing behind', async () => {
  const leaving = new AbortController()
  let tellGone: () => void = () => undefined
  const gone = new Promise<void>((resolve) => (tellGone = resolve))
  const find = async () => {
    leaving.abort()
    await gone
    return { user: { id: USER, organization_id: 1 } }
  }
  const parts = { sessions: { ended: 0, find }, logRequest: tellGone }
  const { open, plane, record } = await pair(json(), json(), { parts })
  open('chat/completions', CHAT, { token: SESSION, signal: leaving.signal }).catch(() => undefined)
  expect(await record()).toMatchObject({ outcome: 'client_closed', status: 499, user_id: USER })
  expect(plane.activeRequests(1)).toBe(0)
})

test('gateway#41 a client that goes takes along the calls that it sent before it had an answer', async () => {
  const { port, records, upstreams } = await pair(() => undefined)
  const { connect } = await import('node:net')
  const body = JSON.stringify(CHAT)
  const head = `POST /rest/v1/llm-gateway/v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n`
  const socket = connect(port, '127.0.0.1')
  socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`.repeat(3))
  const seen = [await upstreams[0].next(), await upstreams[0].next(), await upstreams[0].next()]
  socket.destroy()
  await Promise.all(seen.map(({ closed }) => closed))
  await expect.poll(() => records.map(({ outcome }) => outcome)).toEqual(Array(3).fill('client_closed'))
})
