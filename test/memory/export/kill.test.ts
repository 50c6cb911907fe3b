import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDatabase } from '../../../src/database/open.ts'
import { listChains } from '../../../src/memory/store/chains.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { runProgram, spawnProgram } from '../../support/program.ts'
import { startServer, type RunningServer } from '../../support/server.ts'
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
let workspace: string
let text: string
beforeAll(async () => {
  source = await createPlace()
  const [first = ''] = await within(source, (memory) => live(memory, STEPS))
  workspace = first
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

const onBoth = [{ dialect: 'sqlite' as const }, ...(hasPostgres ? [{ dialect: 'postgres' as const }] : [])]

test.each(onBoth)('a running server sees what a repeated import brought, on $dialect', async ({ dialect }) => {
  const place = await createPlace(dialect)
  const { directory, env } = place
  writeFileSync(join(directory, 'all.jsonl'), text)
  const bringIn = (...flags: string[]) => runProgram(['import', 'all.jsonl', ...flags], { directory, env })
  const server = await startServer({ directory, env })
  expect(await bringIn()).toMatchObject({ code: 0, stderr: '' })
  await imprint(server, 'Spelt is what grows here.')
  expect(await recall(server, 'spelt')).toEqual([expect.stringContaining('Spelt')])

  const cutOff = spawnProgram(['import', 'all.jsonl', '--conflict', 'overwrite'], { directory, env })
  const ended = once(cutOff, 'close')
  while ((await call(server, 'GET', '')).status === 200) await sleep(1)
  cutOff.kill('SIGKILL')
  await ended
  expect(await call(server, 'POST', '/recall', { query: 'spelt' })).toMatchObject({ status: 404 })
  expect(await within(place, ({ service: { seams } }) => listChains(seams.metadata))).toEqual([])
  expect(await exported(place)).toBe(await exportedOfNothing())

  expect(await bringIn()).toMatchObject({ code: 0, stderr: '' })
  expect(await recall(server, 'spelt')).toEqual([])
  expect(await recall(server, 'keeper 42')).toEqual([expect.stringContaining('page 42')])
  await imprint(server, 'Rye is what grows here.')
  expect(await recall(server, 'rye')).toEqual([expect.stringContaining('Rye')])
  expect(await verified(place)).toMatchObject([{ workspace_id: workspace, ok: true }])
  await server.stop()
  await place.remove()
})

async function call(server: RunningServer, method: string, path: string, body?: object) {
  const answer = await fetch(`${server.url}/v1/workspaces/${workspace}${path}`, {
    method,
    headers: { 'Mem-Agent-Id': 'agent_test', 'Content-Type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: answer.status, text: await answer.text() }
}

async function imprint(server: RunningServer, content: string): Promise<void> {
  expect(await call(server, 'POST', '/memories', { content })).toMatchObject({ status: 201 })
}

async function recall(server: RunningServer, query: string): Promise<string[]> {
  const answer = await call(server, 'POST', '/recall', { query, mode: 'keyword', k: 1 })
  const { results }: { results: { text: string }[] } = JSON.parse(answer.text)
  return results.map((hit) => hit.text)
}

async function exportedOfNothing(): Promise<string> {
  const nowhere = await createPlace()
  const nothing = await exported(nowhere)
  await nowhere.remove()
  return nothing
}
