/**
 * Tools over stdio, beside the reference server: node bench/run.mjs tools [records] [seconds]
 * Both are driven by the same client over a store of 10,000 texts of 20 words: one call after the other, creates also 16 at a time. Search is for three words
 * that follow each other in a stored text. At the end 20 creates at once; then how many of them can be read. `start` is
 * from the start of the process, over those records, to the end of the handshake. `cpu` is processor time a call, of the
 * server's process. Times are milliseconds.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { packageRoot } from '../src/base/package-root.ts'
import { cpuSeconds, hammer, machine, median, printTable, quantiles, round } from './support/measure.ts'
import { entityOf, startServerMemoryTools, startToolServer, type ToolServer } from './support/peers.ts'
import { textOf } from './support/words.ts'

const WORDS = 20
const STARTS = 10
const AT_ONCE = 20
const IN_FLIGHT = 16
const SEARCHES = 200

/** What both have tools for. */
interface Notes {
  name: string
  start(): Promise<ToolServer>
  create(server: ToolServer, name: string, text: string): Promise<unknown>
  search(server: ToolServer, query: string): Promise<unknown>
  /** How many of these there are. */
  count(server: ToolServer, names: readonly string[]): Promise<number>
}

const records = Number(process.argv[2] ?? 10_000)
const seconds = Number(process.argv[3] ?? 5)

function serverMemory(directory: string): Notes {
  const notes = Array.from({ length: records }, (_, i) => entityOf(`old ${i}`, textOf(-i, WORDS)))
  return {
    name: 'server-memory',
    start: () => startServerMemoryTools(directory, notes),
    create: (server, name, text) => server.call('create_entities', { entities: [entityOf(name, text)] }),
    search: (server, query) => server.call('search_nodes', { query }),
    count: async (server, names) => lengthOf((await server.call('open_nodes', { names }))['entities']),
  }
}

async function mem(directory: string): Promise<Notes> {
  const args = [join(packageRoot, 'bin/mem.js'), 'mcp', '--data-dir', directory]
  const start = (): Promise<ToolServer> => startToolServer(args, { HOME: directory })
  const server = await start()
  const { id: workspace_id } = await server.call('mem_create_workspace', { name: 'bench' })
  const create = (to: ToolServer, name: string, content: string): Promise<unknown> =>
    to.call('mem_imprint', { workspace_id, agent_id: 'agent_bench', content, tags: { name } })
  let next = 0
  const fill = async (): Promise<void> => {
    while (next < records) await create(server, `old ${next}`, textOf(-next++, WORDS))
  }
  await Promise.all(Array.from({ length: 16 }, fill))
  await server.close()
  return {
    name: 'mem',
    start,
    create,
    search: (to, query) => to.call('mem_recall', { workspace_id, query }),
    count: async (to, names) => {
      const filters = { tags: { name: names } }
      const answer = await to.call('mem_recall', { workspace_id, query: 'note', k: 100, filters, mode: 'vector' })
      return lengthOf(answer['results'])
    },
  }
}

const lengthOf = (value: unknown): number => (Array.isArray(value) ? value.length : NaN)

/** Three words in the middle of a stored text. */
const queryOf = (number: number): string =>
  textOf(-(number % records), WORDS)
    .split(' ')
    .slice(8, 11)
    .join(' ')

async function measure(notes: Notes): Promise<Record<string, string | number>> {
  const starts: number[] = []
  for (let i = 0; i < STARTS; i++) {
    const begin = performance.now()
    const server = await notes.start()
    starts.push(performance.now() - begin)
    await server.close()
  }
  const server = await notes.start()
  const begin = performance.now()
  await notes.search(server, queryOf(0))
  const first = performance.now() - begin
  const cpu = (): number => 1000 * cpuSeconds(server.pid ?? 0)
  const beforeSearches = cpu()
  const searches: number[] = []
  for (let i = 1; i <= SEARCHES; i++) {
    const before = performance.now()
    await notes.search(server, queryOf(i * 37))
    searches.push(performance.now() - before)
  }
  const beforeCreates = cpu()
  let next = 0
  const create = async (): Promise<void> => {
    next++
    await notes.create(server, `new ${next}`, textOf(next, WORDS))
  }
  const creates = await hammer(1, seconds, create)
  const createCpu = cpu() - beforeCreates
  const parallel = await hammer(IN_FLIGHT, seconds, create)
  const names = Array.from({ length: AT_ONCE }, (_, i) => `at once ${i}`)
  const ends = await Promise.allSettled(
    names.map((name, i) => notes.create(server, name, textOf(1_000_000 + i, WORDS))),
  )
  await server.close()
  const reader = await notes.start()
  const survived = await notes.count(reader, names)
  await reader.close()
  const { p50, p95 } = quantiles(searches)
  return {
    server: notes.name,
    'creates/s': creates.rate,
    'create p95': creates.p95,
    'create cpu': round(createCpu / creates.count),
    [`creates/s, ${IN_FLIGHT} at a time`]: parallel.rate,
    'first search': Math.round(first),
    'search p50': p50,
    'search p95': p95,
    'search cpu': round((beforeCreates - beforeSearches) / SEARCHES),
    start: median(starts),
    [`of ${AT_ONCE} at once`]: `${ends.filter(({ status }) => status === 'fulfilled').length} answered, ${survived} there`,
  }
}

const rows: Record<string, string | number>[] = []
for (const open of [mem, serverMemory]) {
  const directory = mkdtempSync(join(tmpdir(), 'mem-bench-'))
  rows.push(await measure(await open(directory)))
  rmSync(directory, { recursive: true })
}
console.log(machine())
console.log(`${records} records before`)
printTable(rows)
const [ours, theirs] = rows
const ratio = (column: string): number => Number(ours?.[column]) / Number(theirs?.[column])
const inFlight = `creates/s, ${IN_FLIGHT} at a time`
console.log(
  `creates: ${ratio('creates/s').toFixed(1)} times as many, ${ratio(inFlight).toFixed(1)} ${IN_FLIGHT} at a time (target: 20)`,
)
console.log(`search: ${ratio('search p50').toFixed(3)} of the time (target: 0.1)`)
