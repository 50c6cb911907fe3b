/**
 * The pages of the console: node bench/run.mjs console [Memories]
 * Over a workspace of 100,000 Memories of 60 words: the server's time for each page, over one connection, and what travels
 * of it, with the styles and scripts of the page, to a browser that takes brotli. Targets: 100 ms, 200 kB.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'undici'
import { openInProcess } from './support/in-process.ts'
import { type BenchServer, startBenchServer } from './support/mem.ts'
import { cpuSeconds, machine, printTable, quantiles, round } from './support/measure.ts'
import { textOf } from './support/words.ts'

const WORDS = 60
const BATCH = 2000
const ROUNDS = 50
const BROWSER = { 'accept-encoding': 'br', 'sec-fetch-site': 'same-origin' }

async function fill(directory: string, memories: number): Promise<string> {
  const store = await openInProcess(join(directory, 'data/mem.db'))
  for (let start = 0; start < memories; start += BATCH) {
    const count = Math.min(BATCH, memories - start)
    await store.imprint(Array.from({ length: count }, (_, i) => textOf(start + i, WORDS)))
  }
  await store.close()
  return store.workspace.id
}

/** Addresses of pages, by name, over a Memory with an Edge, a second version and tags. */
async function pagesOf(server: BenchServer, ws: string): Promise<Record<string, string>> {
  const post = (path: string, body: object) => server.post(path, body)
  const { memory_id: id } = await post('/memories', { content: textOf(1, 400), tags: { kind: 'note' } })
  const { memory_id: other } = await post('/memories', { content: textOf(2, 400) })
  await post(`/memories/${id}/edges`, { target_memory_id: other, edge_type: 'references' })
  await post(`/memories/${id}:append`, { content: ' and more' })
  const W = `/ui/workspaces/${ws}`
  const M = `${W}/memories/${id}`
  return {
    home: '/ui/',
    workspaces: '/ui/workspaces',
    'recall, empty': W,
    'recall, 10 hits': `${W}?q=${encodeURIComponent(textOf(-1, 4))}`,
    'recall, 100 hits': `${W}?q=${encodeURIComponent(textOf(-2, 4))}&k=100`,
    memories: `${W}/memories`,
    collections: `${W}?tab=collections`,
    agents: `${W}?tab=agents`,
    bulk: `${W}?tab=bulk`,
    'workspace settings': `${W}?tab=settings`,
    content: M,
    cells: `${M}?tab=cells`,
    edges: `${M}?tab=edges&depth=2`,
    history: `${M}?tab=history`,
    graph: `${W}/graph`,
    audit: '/ui/audit',
    'audit of a workspace': `/ui/audit?ws=${ws}`,
    'audit, filtered': `/ui/audit?ws=${ws}&ops=append`,
    reference: '/ui/reference',
    settings: '/ui/settings',
  }
}

/** May take longer than a request may. */
async function fillIndex(server: BenchServer): Promise<void> {
  for (;;) {
    try {
      return void (await server.post('/recall', { query: textOf(-1, 4) }))
    } catch (error) {
      if (!String(error).includes('timeout')) throw error
    }
  }
}

interface Loaded {
  text: string
  bytes: number
  encoding: string | string[] | undefined
}

async function measure(client: Client, pid: number, path: string): Promise<Record<string, number>> {
  const load = async (address: string, headers: Record<string, string>): Promise<Loaded> => {
    const { statusCode, headers: sent, body } = await client.request({ method: 'GET', path: address, headers })
    const bytes = Buffer.from(await body.arrayBuffer())
    if (statusCode !== 200) throw new Error(`${address}: ${statusCode} ${bytes.toString()}`)
    return { text: bytes.toString(), bytes: bytes.length, encoding: sent['content-encoding'] }
  }
  const times: number[] = []
  let page = await load(path, BROWSER)
  const cpu = cpuSeconds(pid)
  for (let i = 0; i < ROUNDS; i++) {
    const before = performance.now()
    page = await load(path, BROWSER)
    times.push(performance.now() - before)
  }
  const cpuMs = round((1000 * (cpuSeconds(pid) - cpu)) / ROUNDS)
  const plain = await load(path, {})
  let files = 0
  for (const [, file = ''] of plain.text.matchAll(/(?:src|href)="(\/ui\/static\/[^"]+)"/g)) {
    files += (await load(file, { 'accept-encoding': 'gzip' })).bytes
  }
  const { p50, p95 } = quantiles(times)
  const kB = (bytes: number): number => round(bytes / 1000)
  return {
    'p50 ms': p50,
    'p95 ms': p95,
    'cpu ms': cpuMs,
    'page kB': kB(plain.bytes),
    'travels kB': kB(page.bytes),
    'in all kB': kB(page.bytes + files),
  }
}

const memories = Number(process.argv[2] ?? 100_000)
const directory = mkdtempSync(join(tmpdir(), 'mem-bench-'))
try {
  const ws = await fill(directory, memories)
  const server = await startBenchServer(directory, ws)
  const pages = await pagesOf(server, ws)
  await fillIndex(server)
  const client = new Client(server.url)
  const rows = []
  for (const [page, path] of Object.entries(pages)) rows.push({ page, ...(await measure(client, server.pid, path)) })
  await client.close()
  await server.stop()
  console.log(machine())
  printTable(rows)
} finally {
  rmSync(directory, { recursive: true })
}
