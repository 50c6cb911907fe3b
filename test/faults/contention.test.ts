import { expect, it } from 'vitest'
import { verifyChain } from '../../src/memory/ledger.ts'
import { findChain } from '../../src/memory/store/chains.ts'
import type { RunningServer } from '../support/server.ts'
import { expectNothingHalfWritten } from './halves.ts'
import { call, createWorkspace } from './http.ts'
import { createPlace, describeOnBothDatabases, type Place, ROUNDS } from './place.ts'

const WRITERS = 64
const UPDATES_EACH = Math.ceil(ROUNDS / 5)

interface Outcome {
  answered: number[]
  won: string[]
}

/** Every writer reads the head and puts its own text over it, again and again. */
async function race(servers: readonly RunningServer[], path: string): Promise<Outcome> {
  const outcome: Outcome = { answered: [], won: [] }
  const write = async (writer: number): Promise<void> => {
    const server = servers[writer % servers.length]
    if (!server) throw new Error('no server')
    for (let update = 0; update < UPDATES_EACH; update++) {
      const head = (await call(server, 'GET', path)).body.head_watermark
      const content = `writer ${writer} update ${update}`
      const { status, body } = await call(server, 'PUT', path, { content }, { 'If-Match': head })
      outcome.answered.push(status)
      if (status === 200) outcome.won.push(body.watermark)
    }
  }
  await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)))
  return outcome
}

async function expectOneHistory(
  place: Place,
  workspace: string,
  memory: string,
  { answered, won }: Outcome,
): Promise<void> {
  expect(answered).toHaveLength(WRITERS * UPDATES_EACH)
  expect(won.length).toBeGreaterThan(0)
  expect(answered.filter((status) => status === 412)).toHaveLength(answered.length - won.length) // and nothing else

  const stores = await place.open()
  const updates = await stores.all<{ watermark: string }>(
    `SELECT watermark FROM memory_version WHERE memory_id = $1 AND op = 'update' ORDER BY version_no`,
    [memory],
  )
  const entries = await stores.all<{ watermark_before: string; watermark_after: string }>(
    `SELECT watermark_before, watermark_after FROM ledger WHERE target = $1 AND op = 'update' ORDER BY seq`,
    [memory],
  )
  expect(updates.map(({ watermark }) => watermark).sort()).toEqual([...won].sort())
  expect(entries.map((entry) => entry.watermark_after)).toEqual(updates.map(({ watermark }) => watermark))
  for (const [i, entry] of entries.slice(1).entries()) expect(entry.watermark_before).toBe(entries[i]?.watermark_after)
  const chain = await findChain(stores, workspace)
  expect(await verifyChain(stores, workspace, async () => chain)).toMatchObject({ ok: true })
  await expectNothingHalfWritten(stores)
  await stores.close()
}

describeOnBothDatabases('several writers', (dialect) => {
  it.each([1, 2])(
    'memory#30 64 of them on one Memory through %i servers: each head is replaced once',
    async (count) => {
      const place = await createPlace(dialect)
      const servers = await Promise.all(Array.from({ length: count }, () => place.start()))
      const [first] = servers
      if (!first) throw new Error('no server')
      const workspace = await createWorkspace(first)
      const memories = `/workspaces/${workspace}/memories`
      const memory: string = (await call(first, 'POST', memories, { content: 'the first' })).body.memory_id
      const outcome = await race(servers, `${memories}/${memory}`)
      for (const server of servers) expect(await server.stop()).toBe(0)
      await expectOneHistory(place, workspace, memory, outcome)
      await place.remove()
    },
  )

  it('memory#30 appends through two servers: none is lost', async () => {
    const place = await createPlace(dialect)
    const servers = await Promise.all([place.start(), place.start()])
    const workspace = await createWorkspace(servers[0])
    const memories = `/workspaces/${workspace}/memories`
    const memory: string = (await call(servers[0], 'POST', memories, { content: 'start' })).body.memory_id
    const words = Array.from({ length: 40 }, (_, i) => ` word${i}.`)
    const answers = await Promise.all(
      words.map((content, i) =>
        call(servers[i % 2 === 0 ? 0 : 1], 'POST', `${memories}/${memory}:append`, { content }),
      ),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    const { content }: { content: string } = (await call(servers[1], 'GET', `${memories}/${memory}`)).body
    expect(
      content
        .split(/(?<=\.)/)
        .map((word) => word.replace('start', ''))
        .sort(),
    ).toEqual([...words].sort())
    for (const server of servers) expect(await server.stop()).toBe(0)
    await place.remove()
  })

  it("memory#137 two servers see each other's commits in the next request", async () => {
    const place = await createPlace(dialect)
    const [a, b] = await Promise.all([place.start(), place.start()])
    const workspace = await createWorkspace(a)
    const memories = `/workspaces/${workspace}/memories`
    const find = async (server: RunningServer, query: string): Promise<string[]> =>
      (await call(server, 'POST', `/workspaces/${workspace}/recall`, { query, mode: 'keyword' })).body.results.map(
        (hit: { memory_id: string }) => hit.memory_id,
      )
    for (let round = 0; round < ROUNDS; round++) {
      const [one, other] = round % 2 === 0 ? [a, b] : [b, a]
      const { memory_id: id, watermark } = (await call(one, 'POST', memories, { content: `lantern${round}` })).body
      expect(await find(other, `lantern${round}`)).toEqual([id])
      const path = `${memories}/${id}`
      const { status } = await call(other, 'PUT', path, { content: `candle${round}` }, { 'If-Match': watermark })
      expect(status).toBe(200)
      expect(await find(one, `lantern${round}`)).toEqual([])
      expect(await find(one, `candle${round}`)).toEqual([id])
      await call(one, 'PUT', `${path}/tags/round`, { value: `${round}` })
      expect((await call(other, 'GET', path)).body).toMatchObject({
        content: `candle${round}`,
        tags: { round: `${round}` },
      })
      await call(other, 'DELETE', path)
      expect((await call(one, 'GET', path)).status).toBe(404)
      expect(await find(one, `candle${round}`)).toEqual([])
    }
    for (const server of [a, b]) expect(await server.stop()).toBe(0)
    await place.remove()
  })
})
