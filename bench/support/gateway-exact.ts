import { Agent } from 'undici'
import { readBooks, readBooksOf, type Books } from '../../test/support/gateway-load/books.ts'
import { numbersFrom } from '../../test/support/gateway-load/calls.ts'
import { differences } from '../../test/support/gateway-load/check.ts'
import { makeCalls, type Seen } from '../../test/support/gateway-load/client.ts'
import type { LoadProvider } from '../../test/support/gateway-load/provider.ts'
import type { RunningServer } from '../../test/support/server.ts'
import type { Installation } from './gateway-server.ts'
import { printTable } from './measure.ts'

const AT_ONCE = 64
const KILLS = 3
/** What a killed process may lose. Contract: gateway.md 7.1. */
const LOST_MS = 500

/**
 * Loads of every sort of call: to the end, over a clean stop, over kill -9. What is written must equal what the provider told
 * and clients saw. @returns whether it does
 */
export async function isExact(installation: Installation, provider: LoadProvider, calls: number): Promise<boolean> {
  const rows: Record<string, string | number>[] = []
  /** All that must have a record. */
  const expected: Seen[] = []
  let next = 0
  let isRight = true

  const load = async (server: RunningServer, onSeen: (count: number) => void = () => undefined): Promise<Seen[]> => {
    const dispatcher = new Agent({ connections: AT_ONCE })
    const target = { url: server.url, key: installation.key, dispatcher, run: 'exact' }
    let count = 0
    const seen = await makeCalls(target, numbersFrom(next, calls), AT_ONCE, ({ end }) => {
      onSeen(++count)
      return end !== 'lost'
    })
    await dispatcher.destroy()
    next += calls
    return seen
  }
  const judge = (name: string, seen: readonly Seen[], { records, views }: Books): void => {
    const faults = differences(expected, records, provider)
    const known = new Set(records.map(({ request_id: id }) => id))
    const sums = JSON.stringify(views.records)
    const isOne = [views.analytics, views.metrics].every((view) => ['{}', sums].includes(JSON.stringify(view)))
    isRight &&= isOne && faults.length === 0
    rows.push({
      load: name,
      calls: seen.length,
      'as clients saw them': endsOf(seen),
      'without a record': seen.filter(({ id, end }) => end !== 'lost' && !known.has(id)).length,
      differences: faults.length,
      'records so far': sums,
      'analytics, cost, metrics': isOne ? 'equal' : JSON.stringify(views),
    })
    for (const fault of faults.slice(0, 10)) console.error(`${name}: ${fault}`)
  }
  const reread = async (): Promise<Books> => {
    const server = await installation.start()
    const books = await readBooks({ url: server.url, token: installation.session })
    await server.stop()
    return books
  }

  const server = await installation.start()
  const whole = await load(server)
  expected.push(...whole)
  const reader = { url: server.url, token: installation.session }
  judge('to its end', whole, await readBooksOf(reader, whole.length, installation.metricsToken))

  let ended: Promise<unknown> | undefined
  const cut = await load(server, (count) => {
    if (count === Math.floor(calls / 2)) ended = server.stop()
  })
  await ended
  expected.push(...cut)
  judge('SIGTERM in the middle', cut, await reread())

  for (let round = 1; round <= KILLS; round++) {
    const victim = await installation.start()
    let killedAt = Infinity
    const seen = await load(victim, (count) => {
      if (count !== Math.floor((calls * round) / (KILLS + 1))) return
      killedAt = Date.now()
      ended = victim.kill()
    })
    await ended
    const books = await reread()
    const known = new Set(books.records.map(({ request_id: id }) => id))
    // When a client went is known to its server only when that sees it, and then it leaves the provider.
    const endedAt = ({ end, at, number }: Seen): number =>
      end === 'left' ? (provider.leftAt.get(number) ?? Infinity) : at
    expected.push(...seen.filter((each) => endedAt(each) <= killedAt - LOST_MS || known.has(each.id)))
    judge(`kill -9, ${round}`, seen, books)
  }
  printTable(rows)
  return isRight
}

function endsOf(seen: readonly Seen[]): string {
  const counts = new Map<string, number>()
  for (const { end, status } of seen) {
    const name = end === 'whole' ? String(status) : end
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return [...counts].map(([name, count]) => `${name} ${count}`).join(', ')
}
