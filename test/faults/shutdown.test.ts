import { request } from 'node:http'
import { once } from 'node:events'
import { json } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import type { RunningServer } from '../support/server.ts'
import { expectNothingHalfWritten } from './halves.ts'
import { call, createWorkspace, tryCall } from './http.ts'
import { createPlace, describeOnBothDatabases } from './place.ts'
import { Writer } from './writer.ts'

const WRITERS = 16
const SLOW_REQUESTS = 8
const ACKNOWLEDGED = 300

interface SlowRequest {
  /** Sends the body and gives what the server answers. */
  finish(): Promise<{ status: number | undefined; body: { memory_id: string } }>
}

/** A request that the server has begun, for it asks for the body. */
async function beginImprint(server: RunningServer, workspace: string, content: string): Promise<SlowRequest> {
  const body = JSON.stringify({ content })
  const headers = {
    Expect: '100-continue',
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    'Mem-Agent-Id': 'agent_slow',
  }
  const sent = request(`${server.url}/v1/workspaces/${workspace}/memories`, { method: 'POST', headers, agent: false })
  sent.flushHeaders()
  await once(sent, 'continue')
  return {
    finish: async () => {
      sent.end(body)
      const [response] = await once(sent, 'response')
      return { status: response.statusCode, body: (await json(response)) as { memory_id: string } }
    },
  }
}

describeOnBothDatabases('SIGTERM under load', (dialect) => {
  it('lets what has begun end, takes nothing new, exits 0 and keeps all', async () => {
    const place = await createPlace(dialect)
    const server = await place.start()
    const workspace = await createWorkspace(server)
    const writers = Array.from({ length: WRITERS }, (_, i) => new Writer(workspace, `w${i}`, i))
    const slow = await Promise.all(
      Array.from({ length: SLOW_REQUESTS }, (_, i) => beginImprint(server, workspace, `slow ${i}`)),
    )
    let left = ACKNOWLEDGED
    let stopped: Promise<number | null> | undefined
    const count = (): void => {
      if (--left === 0) stopped = server.stop()
    }
    await Promise.all(writers.map((writer) => writer.run(server, count)))
    await expect.poll(() => tryCall(server, 'GET', '/workspaces')).toBeUndefined()
    const answers = await Promise.all(slow.map((begun) => begun.finish()))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201))
    expect(await stopped).toBe(0)

    const stores = await place.open()
    await expectNothingHalfWritten(stores)
    await stores.close()
    const next = await place.start()
    for (const [i, { body }] of answers.entries()) {
      const { content } = (await call(next, 'GET', `/workspaces/${workspace}/memories/${body.memory_id}`)).body
      expect(content).toBe(`slow ${i}`)
    }
    for (const memory of writers.flatMap((writer) => writer.memories)) {
      const { status } = await call(next, 'GET', `/workspaces/${workspace}/memories/${memory.id}`)
      const isOpen = writers.some((writer) => writer.open?.memory === memory)
      expect(status === (memory.forgotten ? 404 : 200) || isOpen).toBe(true)
    }
    expect(await next.stop()).toBe(0)
    await place.remove()
  })
})
