import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import fc from 'fast-check'
import { afterEach, expect, test } from 'vitest'
import { createIdSource } from '../../src/base/ids.ts'
import { createLogger } from '../../src/base/log.ts'
import { chainEntry } from '../../src/memory/ledger-chain.ts'
import { GENESIS_HASH } from '../../src/memory/store/chains.ts'
import { LedgerFile } from '../../src/memory/store/ledger-file.ts'
import type { LedgerRow } from '../../src/memory/store/ledger.ts'
import { adjustableClock } from '../support/memory-api.ts'

const clock = adjustableClock()
const ids = createIdSource(clock)
const log = createLogger('silent', 'json')
const directories: string[] = []
afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true })
})

function newPath(): string {
  const directory = mkdtempSync(join(tmpdir(), 'mem-test-ledger-'))
  directories.push(directory)
  return join(directory, 'ledger.jsonl')
}

/** A chain of so many entries. */
function chain(count: number): LedgerRow[] {
  let prev = { seq: 0, headHash: GENESIS_HASH }
  return Array.from({ length: count }, (_, i) => {
    const row = chainEntry(
      {
        ledger_id: ids('lg_'),
        workspace_id: 'ws_01ARZ3NDEKTSV4RRFFQ69G5FAV',
        op: 'imprint',
        agent_id: 'agent_test',
        ts: clock.now(),
        target: `mem_${i}`,
        watermark_before: null,
        watermark_after: 'wmk_01ARZ3NDEKTSV4RRFFQ69G5FAV',
        request_id: `req_${i}`,
        latency_ms: 1.25,
        api_key_id: null,
        user_id: null,
        metadata: '{"cells_created":1}',
        ip: '127.0.0.1',
        user_agent: 'naïve "agent" \u2028 line',
        redact_audit: 0,
      },
      prev,
    )
    prev = { seq: row.seq, headHash: row.entry_hash }
    return row
  })
}

async function readAll(path: string): Promise<LedgerRow[]> {
  const rows: LedgerRow[] = []
  for await (const row of new LedgerFile(path, clock, log).entries()) rows.push(row)
  return rows
}

test('what is appended is read back whole, a JSON line each, mode 0600', async () => {
  const path = newPath()
  const rows = chain(5)
  const file = new LedgerFile(path, clock, log)
  await file.append(rows.slice(0, 2))
  await file.append(rows.slice(2))
  await file.close()
  expect(await readAll(path)).toEqual(rows)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
  expect(lines.map((line) => JSON.parse(line).seq)).toEqual([1, 2, 3, 4, 5])
})

test('batches that come again, whole or in part, in any process, leave each entry once', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({ take: fc.integer({ min: 1, max: 6 }), again: fc.integer({ min: 0, max: 6 }), anew: fc.boolean() }),
        {
          maxLength: 8,
        },
      ),
      fc.constantFrom(100, 2000, 100_000_000),
      async (steps, maxBytes) => {
        const path = newPath()
        const rows = chain(60)
        let file = new LedgerFile(path, clock, log, maxBytes)
        let at = 0
        for (const { take, again, anew } of steps) {
          if (anew) {
            await file.close()
            file = new LedgerFile(path, clock, log, maxBytes)
          }
          await file.append(rows.slice(Math.max(0, at - again), at + take))
          at += take
        }
        await file.close()
        expect((await readAll(path)).map((row) => row.seq)).toEqual(rows.slice(0, at).map((row) => row.seq))
      },
    ),
    { numRuns: 40 },
  )
})

test('a line that a crash cut off is taken away, and the entry written whole', async () => {
  const path = newPath()
  const rows = chain(3)
  const file = new LedgerFile(path, clock, log)
  await file.append(rows.slice(0, 2))
  const whole = readFileSync(path, 'utf8')
  for (const cut of [1, 20, 300]) {
    writeFileSync(path, whole + JSON.stringify(rows[2]).slice(0, cut))
    expect((await readAll(path)).map((row) => row.seq)).toEqual([1, 2])
    const next = new LedgerFile(path, clock, log)
    await next.append(rows.slice(2))
    await next.close()
    expect((await readAll(path)).map((row) => row.seq)).toEqual([1, 2, 3])
  }
})

test('another process may append in between', async () => {
  const path = newPath()
  const rows = chain(6)
  const [a, b] = [new LedgerFile(path, clock, log), new LedgerFile(path, clock, log)]
  await a.append(rows.slice(0, 2))
  await b.append(rows.slice(1, 4))
  await a.append(rows.slice(2, 5))
  await b.append(rows.slice(0, 6))
  expect((await readAll(path)).map((row) => row.seq)).toEqual([1, 2, 3, 4, 5, 6])
})

test('a full file is set aside under the time and gzipped; a crash before that is made up for', async () => {
  const path = newPath()
  const directory = join(path, '..')
  const rows = chain(40)
  const file = new LedgerFile(path, clock, log, 5000)
  for (const row of rows.slice(0, 30)) await file.append([row])
  await file.close()
  const zipped = readdirSync(directory).filter((name) => name.endsWith('.gz'))
  expect(zipped.length).toBeGreaterThan(2)
  for (const name of zipped) {
    expect(name).toMatch(/^ledger-\d{8}T\d{9}Z\.jsonl\.gz$/)
    expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600)
    expect(gunzipSync(readFileSync(join(directory, name))).length).toBeLessThanOrEqual(5000)
  }
  expect(await readAll(path)).toEqual(rows.slice(0, 30))

  // As a crash between setting aside and gzipping leaves it, with what comes again in the file set aside.
  const plain = join(directory, 'ledger-29990101T000000000Z.jsonl')
  writeFileSync(plain, readFileSync(path), { mode: 0o600 })
  rmSync(path)
  appendFileSync(`${plain}.gz.draft`, 'half')
  const next = new LedgerFile(path, clock, log, 5000)
  await next.append(rows.slice(28))
  await next.close()
  expect(readdirSync(directory).filter((name) => /^ledger-.*\.jsonl$/.test(name))).toEqual([])
  expect((await readAll(path)).map((row) => row.seq)).toEqual(rows.map((row) => row.seq))
})
