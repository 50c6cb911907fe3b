import { isDeepStrictEqual } from 'node:util'
import { expect, it } from 'vitest'
import type { Database } from '../../src/database/database.ts'
import { verifyChain } from '../../src/memory/ledger.ts'
import { findChain } from '../../src/memory/store/chains.ts'
import { randomSource } from '../memory/search/random-vectors.ts'
import type { RunningServer } from '../support/server.ts'
import { expectNothingHalfWritten } from './halves.ts'
import { call, createWorkspace } from './http.ts'
import { createPlace, describeOnBothDatabases, type Place, ROUNDS } from './place.ts'
import { type Known, Writer } from './writer.ts'

const WRITERS = 16
const ROUNDS_PER_PLACE = 20
const SAMPLE = 10
/** A kill of the second finds the queue at work. */
const VECTORS = [
  { come: 'with the write', config: '' },
  { come: 'from the queue', config: 'embedding: { inline_timeout: 0 }\n' },
  { come: 'with bodies in files', config: 'storage: { content_driver: file }\n' },
]

interface Round {
  workspace: string
  writers: Writer[]
}

/** Kills the server after so many acknowledgements as the seed says, in the middle of what is under way then. */
async function writeAndKill(server: RunningServer, seed: number): Promise<Round> {
  const workspace = await createWorkspace(server)
  const writers = Array.from({ length: WRITERS }, (_, i) => new Writer(workspace, `w${seed}-${i}`, seed * WRITERS + i))
  let left = 40 + Math.floor(randomSource(seed)() * 800)
  let killed: Promise<void> | undefined
  const count = (): void => {
    if (--left === 0) killed = server.kill()
  }
  await Promise.all(writers.map((writer) => writer.run(server, count)))
  await killed
  return { workspace, writers }
}

async function checkStores(stores: Database, { workspace, writers }: Round): Promise<void> {
  await expectNothingHalfWritten(stores)
  const head = await findChain(stores, workspace)
  expect(await verifyChain(stores, workspace, async () => head)).toMatchObject({ ok: true })
  const entries = await stores.all<{ request_id: string; op: string; target: string; watermark_after: string | null }>(
    'SELECT request_id, op, target, watermark_after FROM ledger WHERE workspace_id = $1',
    [workspace],
  )
  for (const { acknowledged, open } of writers) {
    for (const { requestId, op, target, watermark } of acknowledged) {
      const mine = entries.filter((entry) => entry.request_id === requestId && entry.op === op)
      expect(mine).toEqual([{ request_id: requestId, op, target, watermark_after: watermark ?? null }])
    }
    const done = entries.filter((entry) => entry.request_id === open?.requestId && entry.op === open.op)
    expect(done.length).toBeLessThan(2)
  }
  const edges = await stores.all<{ edge_id: string }>('SELECT edge_id FROM edge WHERE workspace_id = $1', [workspace])
  const isOpen = ({ open }: Writer): boolean => open?.op === 'link' || open?.op === 'unlink' || open?.op === 'forget'
  if (!writers.some(isOpen)) {
    const known = writers.flatMap((writer) => [...writer.edges.keys()])
    expect(edges.map((row) => row.edge_id).sort()).toEqual(known.sort())
  }
}

/** Each Memory is as its writer last heard, or as it asked for without an answer. */
async function checkMemories(server: RunningServer, { workspace, writers }: Round): Promise<void> {
  for (const writer of writers) {
    if (writer.open?.op === 'imprint') await repeatImprint(server, writer)
    for (const memory of writer.memories) {
      const { status, body } = await call(server, 'GET', `/workspaces/${workspace}/memories/${memory.id}`)
      const found = status === 200 ? { content: body.content, tags: body.tags ?? {} } : { status }
      const expected = (known: Partial<Known>): object =>
        known.forgotten ? { status: 404 } : { content: known.content, tags: known.tags }
      const changed = writer.open?.memory === memory ? { ...memory, ...writer.open.becomes } : memory
      const isChanged = isDeepStrictEqual(found, expected(changed))
      if (!isChanged) expect(found).toEqual(expected(memory))
      if (status === 200 && (changed === memory || !isChanged)) expect(body.head_watermark).toBe(memory.watermark)
      if (status === 200)
        expect(lettersOf(body.cells.map((cell: { text: string }) => cell.text))).toBe(lettersOf([body.content]))
      if (isChanged && changed !== memory) writer.settle(memory, writer.open?.becomes)
    }
  }
}

const lettersOf = (texts: readonly string[]): string => texts.join('').replace(/\s/g, '')

/** The client that got no answer asks again: whichever of the two times it was done, there is one Memory. */
async function repeatImprint(server: RunningServer, writer: Writer): Promise<void> {
  const wish = writer.open
  if (!wish) return
  const reply = await call(server, wish.method, writer.pathOf(wish), wish.body, writer.headersOf(wish))
  expect(reply.status).toBe(201)
  writer.acknowledge(wish, reply.body)
}

async function checkRecall(server: RunningServer, { workspace, writers }: Round): Promise<void> {
  const recall = async (query: string): Promise<string[]> => {
    const request = { query, mode: 'keyword', k: 3 }
    const { body } = await call(server, 'POST', `/workspaces/${workspace}/recall`, request)
    return body.results.map((hit: { memory_id: string }) => hit.memory_id)
  }
  const live = writers.flatMap((writer) => writer.memories).filter(({ forgotten }) => !forgotten)
  for (const memory of live.slice(-SAMPLE)) expect(await recall(memory.token)).toEqual([memory.id])
  const gone = writers.flatMap((writer) => writer.goneTokens)
  for (const token of gone.slice(-SAMPLE)) expect(await recall(token)).toEqual([])
}

/** memory#91: what waited for a vector when the server died gets it from the next one. */
async function untilEmbedded(server: RunningServer, { workspace }: Round): Promise<void> {
  const request = { query: 'rye', mode: 'keyword' }
  const answer = () => call(server, 'POST', `/workspaces/${workspace}/recall`, request)
  await expect.poll(async () => (await answer()).body.embedding_pending).toBe(false)
}

/** Gives the exit code of the last server. */
async function killRounds(place: Place, rounds: number, firstSeed: number): Promise<number | null> {
  let server = await place.start()
  let last: Round | undefined
  for (let seed = firstSeed; seed < firstSeed + rounds; seed++) {
    const round = await writeAndKill(server, seed)
    const stores = await place.open()
    await checkStores(stores, round)
    await stores.close()
    server = await place.start()
    await checkMemories(server, round)
    await checkRecall(server, round)
    last = round
  }
  if (last) await untilEmbedded(server, last)
  return server.stop()
}

describeOnBothDatabases('kill -9 under 16 writers', (dialect) => {
  const rounds = Math.ceil(ROUNDS / VECTORS.length)
  const timeout = 60_000 + rounds * 20_000

  it.each(VECTORS)(
    'memory#133 memory#91 loses and halves nothing; vectors come $come',
    { timeout },
    async ({ config }) => {
      for (let done = 0; done < rounds; done += ROUNDS_PER_PLACE) {
        const place = await createPlace(dialect, config)
        expect(await killRounds(place, Math.min(ROUNDS_PER_PLACE, rounds - done), done + 1)).toBe(0)
        await place.remove()
      }
    },
  )
})
