import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDatabase } from '../../../src/database/open.ts'
import { runProgram, spawnProgram } from '../../support/program.ts'
import { createPlace, exported, verified, within, type Place } from './place.ts'
import { live, type Step } from './story.ts'

/** Enough for an import to write something before it has read all. */
const STEPS: Step[] = Array.from({ length: 110 }, (_, which) => ({
  op: 'imprint',
  text: `The keeper reads page ${which}. `.repeat(1800),
  which: 0,
  tag: 'topic',
}))

let source: Place
let text: string
beforeAll(async () => {
  source = await createPlace()
  await within(source, (memory) => live(memory, STEPS))
  text = await exported(source)
})
afterAll(() => source.remove())

async function untilWritten(path: string): Promise<void> {
  for (;;) {
    try {
      const stores = openDatabase({ dialect: 'sqlite', dsn: path, synchronous: 'full', readonly: true })
      const row = await stores.get<{ n: number }>('SELECT count(*) AS n FROM memory')
      await stores.close()
      if ((row?.n ?? 0) > 0) return
    } catch {
      // Not made yet.
    }
    await sleep(10)
  }
}

test('kill -9 in the middle of an import shows nothing of it, and a second one brings in all', async () => {
  const place = await createPlace()
  const { directory, env } = place
  const child = spawnProgram(['import', '-'], { directory, env })
  const ended = once(child, 'close')
  child.stdin.on('error', () => undefined)
  child.stdin.write(text.slice(0, -1000))
  await untilWritten(join(directory, 'data/mem.db'))
  child.kill('SIGKILL')
  await ended

  await within(place, async ({ service: { seams } }) => {
    for (const table of ['workspace', 'chain']) {
      expect(await seams.metadata.get(`SELECT count(*) AS n FROM ${table}`)).toEqual({ n: 0 })
    }
  })
  expect(await verified(place)).toEqual([])
  writeFileSync(join(directory, 'all.jsonl'), text)
  expect(await runProgram(['import', 'all.jsonl'], { directory, env })).toMatchObject({ code: 0, stderr: '' })
  expect(await exported(place)).toBe(text)
  await place.remove()
})

test('an import whose input ends early leaves nothing behind', async () => {
  const place = await createPlace()
  const { directory, env } = place
  const cut = await runProgram(['import', '-'], { directory, env, input: text.slice(0, -1000) })
  expect(cut).toMatchObject({ code: 4, stdout: '' })
  expect(cut.stderr).toMatch(/cut off/)
  await within(place, async ({ service: { seams } }) => {
    for (const table of ['memory', 'memory_version', 'cell', 'cell_vector', 'memory_tag', 'ledger', 'agent', 'lease']) {
      expect(await seams.metadata.get(`SELECT count(*) AS n FROM ${table}`)).toEqual({ n: 0 })
    }
  })
  await place.remove()
})
