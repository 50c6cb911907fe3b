/**
 * Hybrid recall over HTTP: node bench/run.mjs recall [Cells ...]
 * One client asks questions of 12 and of 4 words, one after the other, of workspaces of 10,000, 100,000 and 1,000,000 Cells
 * of 60 words. `first` is the first question after a start, which fills the index. `cpu` is the server's processor time a
 * question. All times are milliseconds. 1,000,000 Cells need some 10 GB of disk.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openInProcess } from './support/in-process.ts'
import { type BenchServer, startBenchServer } from './support/mem.ts'
import { cpuSeconds, machine, printTable, quantiles, residentMiB, round } from './support/measure.ts'
import { textOf } from './support/words.ts'

const CELL_WORDS = 60
const BATCH = 2000
const WARM_UP = 20
const QUESTIONS = 300
const TARGETS = new Map([
  [10_000, 15],
  [100_000, 50],
  [1_000_000, 150],
])

/** Gives the workspace that holds the Cells. */
async function fill(directory: string, cells: number): Promise<string> {
  const store = await openInProcess(join(directory, 'data/mem.db'))
  for (let start = 0; start < cells; start += BATCH) {
    await store.imprint(Array.from({ length: BATCH }, (_, i) => textOf(start + i, CELL_WORDS)))
    if (start % 100_000 === 0) console.error(`${start} of ${cells} Cells`)
  }
  await store.close()
  return store.workspace.id
}

async function ask(server: BenchServer, number: number, words: number): Promise<number> {
  const before = performance.now()
  const { results } = await server.post('/recall', { query: textOf(-1 - number, words), mode: 'hybrid', k: 10 })
  if (results.length !== 10) throw new Error(`${results.length} hits`)
  return performance.now() - before
}

/** Until the index is filled, which may take longer than a request may. */
async function askFirst(server: BenchServer): Promise<number> {
  const before = performance.now()
  for (;;) {
    try {
      await ask(server, 0, 12)
      return Math.round(performance.now() - before)
    } catch (error) {
      if (!String(error).includes('timeout')) throw error
    }
  }
}

async function askAll(server: BenchServer, words: number): Promise<Record<string, number>> {
  for (let i = 0; i < WARM_UP; i++) await ask(server, i, words)
  const before = cpuSeconds(server.pid)
  const times: number[] = []
  for (let i = 0; i < QUESTIONS; i++) times.push(await ask(server, WARM_UP + i, words))
  const { p50, p95, p99 } = quantiles(times)
  return { p50, p95, p99, cpu: round((1000 * (cpuSeconds(server.pid) - before)) / QUESTIONS) }
}

async function measure(cells: number): Promise<Record<string, string | number>[]> {
  const directory = mkdtempSync(join(tmpdir(), 'mem-bench-'))
  try {
    const workspace = await fill(directory, cells)
    const server = await startBenchServer(directory, workspace)
    const first = await askFirst(server)
    const rows = []
    for (const words of [12, 4]) {
      const figures = await askAll(server, words)
      const MiB = residentMiB(server.pid)
      rows.push({ Cells: cells, words, first, ...figures, MiB, 'p95 target': TARGETS.get(cells) ?? '' })
    }
    await server.stop()
    return rows
  } finally {
    rmSync(directory, { recursive: true })
  }
}

const sizes = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [...TARGETS.keys()]
const rows = []
for (const size of sizes) rows.push(...(await measure(size)))
console.log(machine())
printTable(rows)
