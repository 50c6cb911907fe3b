import { Agent } from 'undici'
import { numbersFrom } from '../../test/support/gateway-load/calls.ts'
import { makeCalls } from '../../test/support/gateway-load/client.ts'
import type { LoadProvider } from '../../test/support/gateway-load/provider.ts'
import type { Installation } from './gateway-server.ts'
import { printTable } from './measure.ts'

const AT_ONCE = 32
const SHARES = { a: 50, b: 30, c: 20 }
const WITHOUT_B = { a: 500 / 7, b: 0, c: 200 / 7 }
/** How long it may take until a credential that is well again gets calls. */
const RETURN_CALLS = 1_000_000

/**
 * Shares of three weighted credentials, one of which goes down and returns. While it is down, and until its breaker opens, it
 * may be more than what may be tried again that fails: such calls are told. @returns whether all shares are within one in a hundred
 */
export async function keepsWeights(
  { start, key }: Installation,
  provider: LoadProvider,
  calls: number,
): Promise<boolean> {
  const server = await start()
  const dispatcher = new Agent({ connections: AT_ONCE })
  const rows: Record<string, string | number>[] = []
  let next = 0
  let isRight = true
  /** Of a hundred answered calls, how many each credential has answered; and how many calls were not. */
  const load = async (count: number, goesOn?: () => boolean) => {
    const before = new Map(provider.answered)
    const target = { url: server.url, key, dispatcher, run: 'weights' }
    const seen = await makeCalls(target, numbersFrom(next, count, 'json'), AT_ONCE, goesOn)
    next = 1 + Math.max(...seen.map(({ number }) => number))
    const refused = seen.filter(({ status }) => status !== 200).length
    const answered = [...provider.answered].map(([name, all]): [string, number] => [
      name,
      all - (before.get(name) ?? 0),
    ])
    return { refused, shares: new Map(answered.map(([name, own]) => [name, (100 * own) / (seen.length - refused)])) }
  }
  const judge = async (name: string, count: number, expected: Record<string, number>): Promise<void> => {
    const { refused, shares } = await load(count)
    const got = Object.keys(expected).map((each): [string, number] => [each, shares.get(each) ?? 0])
    const off = Math.max(...got.map(([each, share]) => Math.abs(share - (expected[each] ?? 0))))
    isRight &&= off <= 1
    const shown = Object.fromEntries(got.map(([each, share]) => [each, share.toFixed(3)]))
    rows.push({ phase: name, calls: count, ...shown, 'most off': off.toFixed(3), 'not answered': refused })
  }

  await judge('all up', calls * 0.4, SHARES)
  provider.down = 'b'
  await judge('b down', calls * 0.2, WITHOUT_B)
  provider.down = undefined
  const before = provider.answered.get('b')
  await load(RETURN_CALLS, () => provider.answered.get('b') === before)
  await judge('b is back', calls * 0.4, SHARES)
  await dispatcher.destroy()
  await server.stop()
  printTable(rows)
  return isRight
}
