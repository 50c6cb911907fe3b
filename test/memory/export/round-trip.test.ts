import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { hasPostgres } from '../../support/postgres.ts'
import { createPlace, exported, imported, verified, within, type Place } from './place.ts'
import { live, stories, type Step } from './story.ts'

/** Seams in files of their own, below a directory. */
const apart = (directory: string): Record<string, string> =>
  Object.fromEntries(['VECTOR', 'GRAPH', 'LEDGER'].map((seam) => [`MEM_${seam}_DSN`, `${directory}/${seam}.db`]))

const bodiesInFiles = (): Record<string, string> => ({ MEM_CONTENT_DRIVER: 'file' })

type Make = () => Promise<Place>
const KINDS: [name: string, isPossible: boolean, runs: number, from: Make, to: Make][] = [
  ['SQLite to SQLite', true, 12, createPlace, createPlace],
  ['SQLite to PostgreSQL', hasPostgres, 3, createPlace, () => createPlace('postgres')],
  ['PostgreSQL to SQLite', hasPostgres, 3, () => createPlace('postgres'), createPlace],
  ['one file to a file each', true, 3, createPlace, () => createPlace('sqlite', apart)],
  [
    'a file each to bodies in files',
    true,
    3,
    () => createPlace('sqlite', apart),
    () => createPlace('sqlite', bodiesInFiles),
  ],
  ['bodies in files to one file', true, 3, () => createPlace('sqlite', bodiesInFiles), createPlace],
]

describe('a store that moves', () => {
  it.each(KINDS)('is exported again byte for byte: %s', async (_, isPossible, numRuns, from, to) => {
    if (!isPossible) return
    await fc.assert(
      fc.asyncProperty(stories, async (steps) => {
        const [here, there] = [await from(), await to()]
        try {
          await within(here, (memory) => live(memory, steps))
          const text = await exported(here)
          expect(await exported(here)).toBe(text)
          await imported(there, text)
          expect(await exported(there)).toBe(text)
          expect((await verified(there)).filter((chain) => !chain.ok)).toEqual([])
          expect(await imported(there, text)).toMatchObject({ workspaces: { imported: 0, overwritten: 0, skipped: 0 } })
        } finally {
          await here.remove()
          await there.remove()
        }
      }),
      { numRuns },
    )
  })
})

test.each([
  ['in one file', () => ({})],
  ['in a file each', apart],
])('an export under writes shows one moment: stores %s', async (_, seams) => {
  const [here, there] = [await createPlace('sqlite', seams), await createPlace()]
  await within(here, (memory) => live(memory, BUSY))
  let stopped = false
  const writing = within(here, async (memory) => {
    do await live(memory, BUSY)
    while (!stopped)
  })
  const text = await exported(here)
  stopped = true
  await writing
  await imported(there, text)
  expect(await exported(there)).toBe(text)
  expect((await verified(there)).every((chain) => chain.ok)).toBe(true)
  expect((await exported(here)).length).toBeGreaterThan(text.length)
  await here.remove()
  await there.remove()
})

const BUSY: Step[] = [
  { op: 'collection', text: 'books', which: 0 },
  ...Array.from({ length: 20 }, (_, which): Step => ({
    op: 'imprint',
    text: `The keeper reads ${which}.`,
    which,
    tag: 'a',
  })),
  ...Array.from({ length: 20 }, (_, which): Step => ({ op: 'append', text: ' And sleeps.', which })),
  ...Array.from({ length: 19 }, (_, which): Step => ({ op: 'link', text: 'why', which, other: which + 1 })),
  { op: 'forget', which: 3, redact: true },
]

test('goes on where it came to: recall finds, writes follow in the same ledger', async () => {
  const [here, there] = [await createPlace(), await createPlace()]
  const [ws = ''] = await within(here, (memory) => live(memory, BUSY))
  await imported(there, await exported(here))
  await within(there, async ({ service, ids }) => {
    const caller = { requestId: ids('req_'), startedAt: 0, agentId: 'agent_test', signal: new AbortController().signal }
    const workspace = await service.requireWorkspace(ws)
    const { results, embedding_pending } = await service.recall.run(caller, workspace, {
      query: 'the keeper reads 7',
      mode: 'vector',
      include_cells: false,
      k: 1,
    })
    expect(results[0]?.text).toBe('The keeper reads 7. And sleeps.')
    expect(embedding_pending).toBe(false)
    await service.imprint.run(caller, workspace, { content: 'The keeper went on.' })
  })
  expect(await verified(there)).toMatchObject([{ ok: true }])
  // And back to where it came from, which is older now.
  const later = await exported(there)
  await expect(imported(here, later)).rejects.toThrow(/is here already and has other content/)
  expect(await imported(here, later, { rule: 'skip' })).toMatchObject({ workspaces: { skipped: 1 } })
  expect(await imported(here, later, { rule: 'overwrite' })).toMatchObject({ workspaces: { overwritten: 1 } })
  expect(await exported(here)).toBe(later)
  await here.remove()
  await there.remove()
})
