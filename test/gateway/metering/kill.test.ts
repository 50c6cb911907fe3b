import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { build } from 'esbuild'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { addressOf } from '../../../src/app/database.ts'
import { packageRoot } from '../../../src/base/package-root.ts'
import type { Database } from '../../../src/database/database.ts'
import { DAY } from '../../../src/gateway/store/aggregates.ts'
import type { Place } from '../../platform/support.ts'
import { describeMetering } from './support.ts'

const LOST_MS = 500

let directory = ''
beforeAll(async () => {
  // Within the checkout: there it finds its packages.
  directory = mkdtempSync(join(packageRoot, 'node_modules/.mem-test-'))
  await build({
    entryPoints: [join(import.meta.dirname, 'writing-process.ts')],
    outfile: join(directory, 'writing-process.mjs'),
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    logLevel: 'error',
  })
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

interface Said {
  at: number
  id: string
}

/** A process under load, ended by a signal once it said so much; what it said, and how it ended. */
async function runUntil(
  place: Place,
  count: number,
  signal: NodeJS.Signals,
): Promise<{ said: Said[]; code: number | null }> {
  const config = place.config()
  const address = JSON.stringify(addressOf(config, config.stores.metadata))
  const args = [join(directory, 'writing-process.mjs'), address, config.storage.data_dir, config.platform.key_file]
  const child: ChildProcess = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'close')
  const said: Said[] = []
  if (!child.stdout) throw new Error('it has an output')
  for await (const line of createInterface(child.stdout)) {
    const [at = '', id = ''] = line.split(' ')
    said.push({ at: Number(at), id })
    if (said.length === count) child.kill(signal)
  }
  await ended
  return { said, code: child.exitCode }
}

async function writtenIds(database: Database): Promise<Set<string>> {
  const rows = await database.all<{ id: string }>(`SELECT id FROM gateway_usage WHERE request_id = 'under-load'`)
  return new Set(rows.map(({ id }) => id))
}

/** As many as there are records: no batch was written in part. */
async function expectWhole(database: Database): Promise<void> {
  const row = await database.get<{ n: string }>(
    `SELECT sum(requests) AS n FROM gateway_usage_aggregates WHERE span = $1`,
    [DAY],
  )
  const records = await database.get<{ n: number }>('SELECT count(*) AS n FROM gateway_usage')
  expect(Number(row?.n ?? 0)).toBe(records?.n)
}

describeMetering('processes that end under load', (place) => {
  test('gateway#91 kill -9 loses the last 500 ms at most, and nothing in part', async () => {
    const database = place().open()
    for (const count of [900, 1777, 2500]) {
      const { said } = await runUntil(place(), count, 'SIGKILL')
      const written = await writtenIds(database)
      const end = said.at(-1)?.at ?? 0
      const lost = said.filter(({ id }) => !written.has(id))
      for (const { at } of lost) expect(end - at).toBeLessThanOrEqual(LOST_MS)
      await expectWhole(database)
    }
    await database.close()
  })

  test('gateway#91 a clean stop loses nothing', async () => {
    const database = place().open()
    const { said, code } = await runUntil(place(), 1500, 'SIGTERM')
    const written = await writtenIds(database)
    expect(code).toBe(0)
    expect(said.filter(({ id }) => !written.has(id))).toEqual([])
    await expectWhole(database)
    await database.close()
  })
})
