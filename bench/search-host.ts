/**
 * Where the index of a workspace should live: node bench/run.mjs search-host [Cells ...]
 * Fills an index of Cells of 80 words and 1024 values, then searches it, in the thread of the server and in the worker.
 * `stall` is the longest time that the server's event loop stood still meanwhile. Times in milliseconds.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { isMainThread } from 'node:worker_threads'
import { SearchHost } from '../src/memory/search/host.ts'
import { LocalSearch } from '../src/memory/search/local.ts'
import { RemoteSearch } from '../src/memory/search/remote.ts'
import type { CellSource, SearchQuery } from '../src/memory/search/types.ts'
import { dot, randomSource, vectorSource } from '../test/memory/search/random-vectors.ts'

const BATCH = 50
const vectorOf = vectorSource(1_024, 'clustered')

/** Words as often as words are: the n-th of 50,000 about 1/n as often as the first. */
function textOf(number: number, words: number): string {
  const random = randomSource(number)
  return Array.from({ length: words }, () => `w${Math.floor(50_000 ** random())}`).join(' ')
}

/** Cells made from their numbers. Those of a workspace named by a number are so many. */
export function openCellSource(): CellSource {
  return {
    async count(workspaceId) {
      return Number(workspaceId)
    },
    async *changes(workspaceId, _model, sinceSeq) {
      for (let seq = sinceSeq; seq < Number(workspaceId); seq += BATCH) {
        const memories = Array.from({ length: BATCH }, (_, i) => {
          const cellNo = seq + i + 1
          const memoryId = `mem_${cellNo}`
          const facts = { collectionId: null, agentId: 'agent_a', createdAt: cellNo }
          const vector = vectorOf(cellNo)
          return {
            memoryId,
            cells: [{ cellNo, cellId: '', memoryId, seq: 0, text: textOf(cellNo, 80), vector, ...facts }],
          }
        })
        yield { seq: seq + BATCH, memories }
      }
    },
    has: () => Promise.resolve(true),
    version: () => undefined,
    async cosines(_model, query, cellNos) {
      return new Map(cellNos.map((cellNo) => [cellNo, dot(query, vectorOf(cellNo))]))
    },
    async close() {},
  }
}

const queryOf = (number: number): SearchQuery => ({
  text: textOf(-number, 5),
  mode: 'hybrid',
  vector: vectorOf(-number),
  k: 5,
  fusionWeight: 1,
  includeCells: false,
})

async function measure(host: SearchHost, workspaceId: string): Promise<object> {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  const search = async (number: number): Promise<number> => {
    const start = performance.now()
    await host.search(workspaceId, 'bench:', queryOf(number), new AbortController().signal)
    return performance.now() - start
  }
  delay.enable()
  const fill = await search(0)
  const fillStall = delay.max / 1e6
  for (let i = 0; i < 20; i++) await search(i)
  delay.reset()
  const times: number[] = []
  for (let i = 0; i < 200; i++) times.push(await search(20 + i))
  times.sort((a, b) => a - b)
  const round = (time = 0): number => Number(time.toFixed(1))
  return {
    fill: round(fill),
    fillStall: round(fillStall),
    p50: round(times[100]),
    p95: round(times[190]),
    stall: round(delay.max / 1e6),
    MiB: Math.round(process.memoryUsage().rss / 2 ** 20),
  }
}

async function main(): Promise<void> {
  const sizes = process.argv.slice(2)
  const worker = new URL('search-worker.mjs', import.meta.url).href
  for (const cells of sizes.length > 0 ? sizes : ['10000', '50000', '100000']) {
    for (const [place, inlineCells] of [['this thread', Infinity] as const, ['worker', 0] as const]) {
      const source = openCellSource()
      const start = { sourceModule: import.meta.url, sourceOptions: {}, maxCells: 2_000_000 }
      const host = new SearchHost(
        source,
        new LocalSearch(source, 2_000_000),
        new RemoteSearch(start, worker),
        inlineCells,
      )
      console.log(cells, place, await measure(host, cells))
      await host.close()
    }
  }
}

if (isMainThread) await main()
