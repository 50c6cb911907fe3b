/**
 * Durable writes: node bench/run.mjs imprint [mem|server-memory|mem0 ...]
 * 16 clients store texts of 20 words, in an empty store and in one of 100,000; mem over HTTP, the others as their users
 * call them. `cpu` is processor time a write, of the server's process where it has one. Times are milliseconds.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startBenchServer } from './support/mem.ts'
import { cpuSeconds, hammer, machine, printTable, round } from './support/measure.ts'
import { type Peer, startMem0, startServerMemory } from './support/peers.ts'
import { textOf } from './support/words.ts'

const CLIENTS = 16
const WARM_UP_SECONDS = 1
const SECONDS = 10
const SIZES = [0, 100_000]

interface Store extends Omit<Peer, 'store'> {
  store(text: string, client: number): Promise<unknown>
}

async function startMem(directory: string, memories: number): Promise<Store> {
  const server = await startBenchServer(directory)
  const store = (content: string, client: number): Promise<unknown> => server.post('/memories', { content }, client)
  let next = 0
  const fill = async (client: number): Promise<void> => {
    while (next < memories) await store(textOf(-next++, 20), client)
  }
  await Promise.all(Array.from({ length: CLIENTS }, (_, client) => fill(client)))
  return { name: 'mem (HTTP)', pid: server.pid, store, close: async () => void (await server.stop()) }
}

const STORES: Record<string, (directory: string, memories: number) => Promise<Store>> = {
  mem: startMem,
  'server-memory': startServerMemory,
  mem0: startMem0,
}

async function measure(name: string, memories: number): Promise<Record<string, string | number>> {
  const directory = mkdtempSync(join(tmpdir(), 'mem-bench-'))
  const store = await STORES[name]?.(directory, memories)
  if (!store) throw new Error(`${name} is none of ${Object.keys(STORES).join(', ')}`)
  const { pid } = store
  let next = 0
  const write = async (client: number): Promise<void> => void (await store.store(textOf(next++, 20), client))
  await hammer(CLIENTS, WARM_UP_SECONDS, write)
  const before = pid === undefined ? NaN : cpuSeconds(pid)
  const { rate, p50, p95, p99, count } = await hammer(CLIENTS, SECONDS, write)
  const cpu = pid === undefined ? '' : round((1000 * (cpuSeconds(pid) - before)) / count)
  await store.close()
  rmSync(directory, { recursive: true })
  return { store: store.name, 'stored before': memories, 'writes/s': rate, p50, p95, p99, cpu }
}

const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(STORES)
const rows = []
for (const name of names) for (const size of SIZES) rows.push(await measure(name, size))
console.log(machine())
printTable(rows)
