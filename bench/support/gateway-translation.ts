import type { Pool } from 'undici'
import type { Installation } from './gateway-server.ts'
import { ask, type Ask, askStream, connectionsTo, startPinned } from './gateway-upstream.ts'
import { cpuSeconds, hammer, median, printTable, round } from './measure.ts'

const CONNECTIONS = 16
const WARM_SECONDS = 3
const ROUNDS = 3
/** What the driver's provider streams first. */
const FIRST_WORD = 'token0'

/** Where a dialect is asked, and what it wants beside model and messages. */
const DIALECTS = {
  openai: { path: '/v1/chat/completions', more: {} },
  anthropic: { path: '/v1/messages', more: { max_tokens: 1000 } },
}
type Dialect = keyof typeof DIALECTS
/** Of client and provider. */
const WAYS = [
  ['openai', 'anthropic'],
  ['anthropic', 'openai'],
] as const
const SHAPES = [
  { what: 'JSON', shape: 'l0-r1', isStream: false },
  { what: 'stream', shape: 'c100-i0', isStream: true },
] as const
const PACED = 'c20-i10'

/** The provider in both dialects; a model's name says which of them serves it. */
export function translationCredentials(upstream: number): Record<string, unknown>[] {
  const address = `http://127.0.0.1:${upstream}`
  const common = { api_key: 'a-key-of-the-provider' }
  return [
    { ...common, provider: 'openai-compatible', base_url: `${address}/v1`, allowed_models: ['mock-openai-*'] },
    { ...common, provider: 'anthropic', base_url: address, allowed_models: ['mock-anthropic-*'] },
  ].map((credential) => ({ ...credential, name: credential.provider }))
}

/**
 * What translating costs: JSON and streams of 100 frames, processor time beside the relay in the client's dialect; and what is
 * added to the first word of streams whose frames come 10 ms apart. Contract: gateway.md 15. @returns whether both reach their goals
 */
export async function translates(
  installation: Installation,
  { upstream, seconds }: { upstream: number; seconds: number },
): Promise<boolean> {
  const { server, stop } = await startPinned(installation, upstream)
  const ours = connectionsTo(Number(new URL(server.url).port), CONNECTIONS)
  const direct = connectionsTo(upstream, CONNECTIONS)
  const throughUs = (call: Ask): Ask => ({ ...call, path: `/rest/v1/llm-gateway${call.path}` })
  const costs = []
  for (const [client, other] of WAYS) {
    for (const { what, shape, isStream } of SHAPES) {
      const [relay, translated] = await costsOf(server.pid, seconds, [
        callTo(ours, throughUs(callOf(installation.key, client, client, shape, isStream)), isStream),
        callTo(ours, throughUs(callOf(installation.key, client, other, shape, isStream)), isStream),
      ])
      const ratio = round(translated / relay)
      costs.push({ what, client, provider: other, 'relay us': relay, 'translated us': translated, ratio })
    }
  }
  printTable(costs)
  const delays = []
  for (const [client, other] of WAYS) {
    const there = await firstWord(direct, callOf(installation.key, other, other, PACED, true), seconds)
    const here = await firstWord(ours, throughUs(callOf(installation.key, client, other, PACED, true)), seconds)
    delays.push({ client, provider: other, 'direct ms': there, 'translated ms': here, 'added ms': round(here - there) })
  }
  printTable(delays)
  await Promise.all([ours.destroy(), direct.destroy()])
  await stop()
  return costs.every(({ ratio }) => ratio <= 2.5) && delays.every((each) => each['added ms'] <= 2)
}

const callOf = (key: string, client: Dialect, served: Dialect, shape: string, isStream: boolean): Ask => ({
  path: DIALECTS[client].path,
  headers: { authorization: `Bearer ${key}`, 'anthropic-version': '2023-06-01' },
  body: JSON.stringify({
    model: `mock-${served}-${shape}`,
    messages: [{ role: 'user', content: 'Why is the sky blue at noon?' }],
    ...DIALECTS[client].more,
    ...(isStream && { stream: true }),
  }),
})

const callTo = (pool: Pool, call: Ask, isStream: boolean) => async (): Promise<void> =>
  isStream ? void (await askStream(pool, call, FIRST_WORD)) : ask(pool, call)

type Call = () => Promise<void>

/** Microseconds of a process a call, by kind of call: the medians of rounds in which they take turns. */
async function costsOf(pid: number, seconds: number, calls: readonly [Call, Call]): Promise<[number, number]> {
  const costs: [number[], number[]] = [[], []]
  for (const call of calls) await hammer(CONNECTIONS, WARM_SECONDS, call)
  for (let turn = 0; turn < ROUNDS; turn++) {
    for (const i of [0, 1] as const) {
      const before = cpuSeconds(pid)
      const { count } = await hammer(CONNECTIONS, seconds, calls[i])
      costs[i].push((1e6 * (cpuSeconds(pid) - before)) / count)
    }
  }
  return [median(costs[0]), median(costs[1])]
}

async function firstWord(pool: Pool, call: Ask, seconds: number): Promise<number> {
  const times: number[] = []
  await hammer(CONNECTIONS, seconds, async () => void times.push(await askStream(pool, call, FIRST_WORD)))
  return median(times)
}
