/**
 * A change of the model beside a running server: node bench/run.mjs reembed [Cells ...]
 * `mem migrate embeddings` gives 100,000 Cells of 60 words vectors of the built-in embedder instead of another, while one
 * client asks without a pause. `seconds` and `cpu` (processor seconds of the command) are to stay below 60; `p50`, `p95` and
 * `max` are questions meanwhile, in milliseconds. Every vector hit must be a Cell of the new model.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openInProcess } from './support/in-process.ts'
import { type BenchServer, startBenchServer } from './support/mem.ts'
import { cpuSeconds, machine, printTable, quantiles, round } from './support/measure.ts'
import { textOf } from './support/words.ts'

const CELL_WORDS = 60
const BATCH = 2000
const OLD = 'noop:default'
const NEW = 'hash:default'

/** Gives the workspace that holds the Cells. */
async function fill(directory: string, cells: number): Promise<string> {
  const store = await openInProcess(join(directory, 'data/mem.db'), OLD)
  for (let start = 0; start < cells; start += BATCH) {
    await store.imprint(Array.from({ length: BATCH }, (_, i) => textOf(start + i, CELL_WORDS)))
  }
  await store.close()
  return store.workspace.id
}

// oxlint-disable-next-line typescript/no-explicit-any -- a benchmark looks at what came
const get = async (url: string): Promise<any> => (await fetch(url)).json()

/** Milliseconds of each question until the signal ends it; the hits of every twentieth are looked up. */
async function ask(server: BenchServer, workspace: string, signal: AbortSignal): Promise<number[]> {
  const times: number[] = []
  for (let i = 0; !signal.aborted; i++) {
    const before = performance.now()
    const { results } = await server.post('/recall', {
      query: textOf(-1 - i, 12),
      mode: i % 2 ? 'vector' : 'hybrid',
      k: 5,
    })
    times.push(performance.now() - before)
    if (i % 20 !== 1) continue
    for (const { memory_id: id } of results) {
      const { cells } = await get(`${server.url}/v1/workspaces/${workspace}/memories/${id}`)
      const [model] = cells.map((cell: { embedding_model?: string }) => cell.embedding_model)
      if (model !== NEW) throw new Error(`a vector hit of ${model}`)
    }
  }
  return times
}

async function measure(cells: number): Promise<Record<string, string | number>> {
  const directory = mkdtempSync(join(tmpdir(), 'mem-bench-'))
  try {
    const workspace = await fill(directory, cells)
    const server = await startBenchServer(directory, workspace)
    const body = JSON.stringify({ name: 'bench', embedding_model: NEW })
    const headers = { 'Content-Type': 'application/json' }
    await fetch(`${server.url}/v1/workspaces/${workspace}`, { method: 'PUT', headers, body })
    await server.post('/recall', { query: 'fills the index' }).catch(() => undefined)
    const end = new AbortController()
    const asking = ask(server, workspace, end.signal)
    const args = [
      'bin/mem.js',
      'migrate',
      'embeddings',
      '-w',
      workspace,
      '--max-rate',
      '0',
      '--data-dir',
      server.dataDir,
    ]
    const start = performance.now()
    const command = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] })
    let cpu = 0
    const timer = setInterval(() => command.exitCode ?? (cpu = cpuSeconds(command.pid ?? 0)), 200)
    const [code] = await once(command, 'exit')
    const seconds = (performance.now() - start) / 1000
    clearInterval(timer)
    end.abort()
    const { p50, p95, max, count } = quantiles(await asking)
    if (code !== 0) throw new Error(`mem migrate embeddings ended with ${code}`)
    await server.stop()
    return { Cells: cells, seconds: round(seconds), cpu: round(cpu), questions: count, p50, p95, max, target: 60 }
  } finally {
    rmSync(directory, { recursive: true })
  }
}

const sizes = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [100_000]
const rows = []
for (const cells of sizes) rows.push(await measure(cells))
console.log(machine())
printTable(rows)
