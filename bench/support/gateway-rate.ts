import { setTimeout as sleep } from 'node:timers/promises'
import type { Installation } from './gateway-server.ts'
import { ask, type Ask, connectionsTo, startDriverProgram, startPinned } from './gateway-upstream.ts'
import { median, printTable, quantiles, round } from './measure.ts'

const CONNECTIONS = 128
const TICK_MS = 1
const WARM_SECONDS = 3
/** Before each reading: until the connections stand. */
const LEAD_SECONDS = 1
const ROUNDS = 3
/** Of the driver's provider. */
const MODEL = 'mock-l50-r1'

interface Reading {
  /** Within the time. */
  answered: number
  p50: number
  p99: number
}

/**
 * An upstream of 50 ms behind direct connections, a bare proxy and the gateway, each asked at the same fixed rate over 128
 * connections that stand, in turn. A call's time counts from when it was due, so that nobody gains by being slow. Contract:
 * gateway.md 15. @returns whether ours reaches its goals
 */
export async function holdsRate(
  installation: Installation,
  { upstream, bare, modules, rate, seconds }: Parts,
): Promise<boolean> {
  const proxies = ['--kind', 'undici-dispatch', '--upstream', String(upstream)]
  const env = { BENCH_MODULES: modules }
  const proxy = await startDriverProgram('proxies.mjs', proxies, { port: bare, onGatewayCore: true, env })
  const { server, stop } = await startPinned(installation, upstream)
  const call = (path: string): Ask => ({
    path,
    headers: { authorization: `Bearer ${installation.key}` },
    body: JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: 'Why is the sky blue at noon?' }] }),
  })
  const targets = [
    { name: 'direct', port: upstream, call: call('/v1/chat/completions') },
    { name: 'bare', port: bare, call: call('/v1/chat/completions') },
    { name: 'ours', port: Number(new URL(server.url).port), call: call('/rest/v1/llm-gateway/v1/chat/completions') },
  ].map((target) => ({ ...target, pool: connectionsTo(target.port, CONNECTIONS), readings: [] as Reading[] }))
  for (const { pool, call: each } of targets) await atRate(() => ask(pool, each), rate, WARM_SECONDS)
  for (let turn = 0; turn < ROUNDS; turn++) {
    for (const { pool, call: each, readings } of targets) {
      await atRate(() => ask(pool, each), rate, LEAD_SECONDS)
      readings.push(await atRate(() => ask(pool, each), rate, seconds))
    }
  }
  const [direct] = targets
  const middle = (readings: readonly Reading[], of: keyof Reading): number => median(readings.map((each) => each[of]))
  const beyond = (readings: readonly Reading[], of: 'p50' | 'p99'): number =>
    round(middle(readings, of) - middle(direct?.readings ?? [], of))
  const rows = targets.map(({ name, readings }) => ({
    target: name,
    'answered, % of direct': round((100 * middle(readings, 'answered')) / middle(direct?.readings ?? [], 'answered')),
    'added p50 ms': beyond(readings, 'p50'),
    'added p99 ms': beyond(readings, 'p99'),
    'p99 ms of each round': readings.map(({ p99 }) => p99).join(', '),
  }))
  printTable(rows)
  await Promise.all(targets.map(({ pool }) => pool.destroy()))
  await stop()
  proxy.kill()
  return rows.every(
    (row) =>
      row.target !== 'ours' ||
      (row['answered, % of direct'] >= 98 && row['added p50 ms'] <= 1.5 && row['added p99 ms'] <= 10),
  )
}

interface Parts {
  /** Ports of the provider and of the bare proxy. */
  upstream: number
  bare: number
  /** The folder of the proxy's packages. */
  modules: string
  /** Calls a second. */
  rate: number
  seconds: number
}

async function atRate(action: () => Promise<void>, rate: number, seconds: number): Promise<Reading> {
  const times: number[] = []
  const running = new Set<Promise<void>>()
  const begin = performance.now()
  const count = rate * seconds
  let inTime = 0
  const callDueAt = async (due: number): Promise<void> => {
    await action()
    const now = performance.now()
    times.push(now - due)
    if (now < begin + seconds * 1000) inTime++
  }
  for (let next = 0; next < count; await sleep(TICK_MS)) {
    for (; next < Math.min(count, ((performance.now() - begin) * rate) / 1000); next++) {
      const call = callDueAt(begin + (next * 1000) / rate)
      running.add(call)
      void call.finally(() => running.delete(call))
    }
  }
  await Promise.all(running)
  return { answered: inTime, ...quantiles(times) }
}
