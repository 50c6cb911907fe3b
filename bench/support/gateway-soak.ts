import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent } from 'undici'
import { readBooks } from '../../test/support/gateway-load/books.ts'
import { numbersFrom } from '../../test/support/gateway-load/calls.ts'
import { differences } from '../../test/support/gateway-load/check.ts'
import { makeCall, makeCalls, type Seen } from '../../test/support/gateway-load/client.ts'
import type { LoadProvider } from '../../test/support/gateway-load/provider.ts'
import type { Installation } from './gateway-server.ts'
import { median, printTable } from './measure.ts'

const TICK_MS = 20
const MINUTE_MS = 60_000
/** Until the last records are written, on a busy machine. */
const WRITTEN_MS = 5000
/** Contract: gateway.md 15. */
const MOST_MB_PER_MINUTE = 1
/** Until everything is compiled and every connection stands. */
const WARM_MINUTES = 5

interface Held {
  rss: number
  heapUsed: number
  external: number
}

/** What the server's main thread writes about its memory, once a second. */
const watcher = (file: string): string =>
  `import { appendFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'
if (isMainThread) setInterval(() => appendFileSync(${JSON.stringify(file)}, JSON.stringify(process.memoryUsage()) + '\\n'), 1000).unref()
`

const megabytes = (bytes: number): number => Math.round(bytes / 1e5) / 10

/** A server that writes its memory down, and what it wrote since it was last asked. */
async function startWatched({ directory, start }: Installation) {
  const file = join(directory, 'memory.jsonl')
  const module = join(directory, 'watch.mjs')
  writeFileSync(module, watcher(file))
  writeFileSync(file, '')
  const server = await start({ NODE_OPTIONS: `--import ${module}` })
  let read = 0
  const sample = (): Record<string, number> => {
    const lines = readFileSync(file, 'utf8').trim().split('\n').slice(read)
    read += lines.length
    const held = lines.filter((line) => line !== '').map((line): Held => JSON.parse(line))
    return {
      'rss MB': megabytes(held.at(-1)?.rss ?? 0),
      // What is garbage comes and goes: the least of a minute is what is really held.
      'least heap MB': megabytes(Math.min(...held.map(({ heapUsed }) => heapUsed))),
      'least external MB': megabytes(Math.min(...held.map(({ external }) => external))),
    }
  }
  return { server, sample }
}

/** Says each minute what is held, also into a file. @returns MB a minute that RSS grew by, once it was warm */
function curve(out: string) {
  const rows: Record<string, number>[] = []
  writeFileSync(out, '')
  return {
    add: (row: Record<string, number>): void => {
      rows.push(row)
      appendFileSync(out, `${JSON.stringify(row)}\n`)
    },
    end: (): number => {
      printTable(rows)
      const warm = rows.slice(Math.min(WARM_MINUTES, rows.length - 2))
      return growth(warm.map((row) => row['rss MB'] ?? 0))
    },
  }
}

/** A step between values that are one apart, from the first half to the second: one that stands out tells nothing. */
function growth(values: readonly number[]): number {
  const half = Math.floor(values.length / 2)
  return (median(values.slice(-half)) - median(values.slice(0, half))) / (values.length - half)
}

/** Calls of every sort at a rate for some minutes: memory must stay flat, and the books exact. @returns whether they do */
export async function soaks(
  installation: Installation,
  provider: LoadProvider,
  { minutes, rate, out }: { minutes: number; rate: number; out: string },
): Promise<boolean> {
  const { server, sample } = await startWatched(installation)
  const dispatcher = new Agent({ connections: 256 })
  const target = { url: server.url, key: installation.key, dispatcher, run: 'soak' }
  const seen: Seen[] = []
  const running = new Set<Promise<unknown>>()
  const { add, end } = curve(out)
  const begin = performance.now()
  let next = 0
  for (let minute = 1; minute <= minutes; minute++) {
    while (performance.now() < begin + minute * MINUTE_MS) {
      const due = ((performance.now() - begin) * rate) / 1000
      for (; next < due; next++) {
        const call = makeCall(target, next).then((each) => seen.push(each))
        running.add(call)
        void call.then(() => running.delete(call))
      }
      await sleep(TICK_MS)
    }
    add({ minute, calls: seen.length, 'under way': running.size, ...sample() })
  }
  await Promise.all(running)
  await dispatcher.destroy()
  const grown = end()
  const reader = { url: server.url, token: installation.session }
  await sleep(WRITTEN_MS)
  const { records, views } = await readBooks(reader, installation.metricsToken)
  await server.stop()
  const faults = differences(seen, records, provider)
  console.log(`RSS grew by ${grown.toFixed(3)} MB a minute; ${faults.length} differences in ${records.length} records`)
  console.log(JSON.stringify(views))
  for (const fault of faults.slice(0, 10)) console.error(fault)
  return grown < MOST_MB_PER_MINUTE && faults.length === 0
}

/** Many streams at once for some minutes. @returns whether memory stayed flat, and every stream came whole */
export async function holdsStreams(
  installation: Installation,
  provider: LoadProvider,
  { minutes, streams, out }: { minutes: number; streams: number; out: string },
): Promise<boolean> {
  const { server, sample } = await startWatched(installation)
  const dispatcher = new Agent({ connections: streams })
  const target = { url: server.url, key: installation.key, dispatcher, run: 'streams' }
  provider.pace = { words: 60, ms: 500 }
  const { add, end } = curve(out)
  const begin = performance.now()
  let ended = 0
  let broken = 0
  const numbers = numbersFrom(0, Infinity, 'stream', 'counted stream', 'message stream')
  const running = makeCalls(target, numbers, streams, (each) => {
    ended++
    if (each.end !== 'whole' || each.status !== 200 || each.words !== provider.pace.words) broken++
    return performance.now() < begin + minutes * MINUTE_MS
  })
  for (let minute = 1; minute <= minutes; minute++) {
    await sleep(begin + minute * MINUTE_MS - performance.now())
    add({ minute, streams: ended, broken, ...sample() })
  }
  await running
  await dispatcher.destroy()
  await server.stop()
  const grown = end()
  console.log(`RSS grew by ${grown.toFixed(3)} MB a minute; ${broken} of ${ended} streams were broken`)
  return grown < MOST_MB_PER_MINUTE && broken === 0
}
