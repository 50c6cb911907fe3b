/** What a scope full of runs that wait costs those that work. */
import { BY_KERNEL, makeChange } from '../../src/kernel/change.ts'
import { claimRuns } from '../../src/kernel/claim.ts'
import type { KernelContext } from '../../src/kernel/context.ts'
import type { Run, RunStatus, WakeCondition } from '../../src/kernel/model/run.ts'
import { moveRun } from '../../src/kernel/run-states.ts'
import { saveMoved } from '../../src/kernel/runs/save.ts'
import { signalRuns } from '../../src/kernel/runs/wake.ts'
import { insertRun, listRuns } from '../../src/kernel/store/runs.ts'
import { installWorker, instantModel, openKernel, publishRun, SCOPE, type Place } from './kernel.ts'
import { quantiles, round } from './measure.ts'

const SHARE = 100
const AT_ONCE = 500
const WARM_UP = 30
const YEAR_MS = 365 * 86_400_000

/** Waiting for a time, for an event of their own, paused, and queued for later. */
function dormant(like: Run, id: string, number: number, now: number): Run {
  const later = new Date(now + YEAR_MS + number * 1000).toISOString()
  const waits = (status: RunStatus, wakeCondition: WakeCondition): Partial<Run> => ({ status, wakeCondition })
  const states: Partial<Run>[] = [
    waits('sleeping', { type: 'timer', wakeAt: later }),
    waits('waiting_for_event', { type: 'event', reference: `dormant ${number}` }),
    { status: 'paused', pausedFrom: 'queued', pauseReason: 'command' },
    { status: 'queued', availableAt: later },
  ]
  return { ...like, id, rootRunId: id, ...states[number % states.length] }
}

interface Bed {
  context: KernelContext
  close(): Promise<void>
}

async function makeBed(place: Place, count: number): Promise<Bed> {
  const store = await place.open()
  const { kernel } = await openKernel(store, instantModel(), { concurrency: 1, turnsPerClaim: 1 })
  const { context } = kernel
  await installWorker(context)
  const like = await publishRun(context)
  await move(context, await claim(context), 'completed')
  for (let from = 0; from < count; from += AT_ONCE) {
    await store.database.transaction(async (tx) => {
      for (let number = from; number < Math.min(from + AT_ONCE, count); number++) {
        await insertRun(tx, dormant(like, context.newId(), number, store.now()))
      }
    })
  }
  // PostgreSQL does it by itself within a minute.
  if (store.database.dialect === 'postgres') await store.database.run('ANALYZE')
  return { context, close: () => store.close().then(() => place.remove()) }
}

const request = {
  scope: SCOPE,
  worker: 'bench',
  kinds: ['agent_work' as const],
  leaseMs: 60_000,
  limits: { agent: 0, owner: 0, objective: 0, concurrency_key: 0 },
  knownAgents: true,
}

async function move(context: KernelContext, run: Run, to: RunStatus, wake?: WakeCondition): Promise<void> {
  await makeChange(context, SCOPE, BY_KERNEL, (change) =>
    saveMoved(change, run, moveRun(run, { to, now: change.now, ...(wake && { wake }) })),
  )
}

async function claim(context: KernelContext): Promise<Run> {
  const [claimed] = await claimRuns(context, request, 1)
  if (!claimed) throw new Error('there was nothing to claim')
  return claimed.run
}

const OPERATIONS = ['publish and queue', 'claim', 'wake', 'list page'] as const
type Operation = (typeof OPERATIONS)[number]
type Times = Record<Operation, number[]>

const noTimes = (): Times => ({ 'publish and queue': [], claim: [], wake: [], 'list page': [] })

/** One run from its publication to its end, and a page of all; each step is timed. */
async function cycle(context: KernelContext, number: number, times: Times): Promise<void> {
  const timed = async <T>(name: Operation, fn: () => Promise<T>): Promise<T> => {
    const begin = performance.now()
    const result = await fn()
    times[name].push(performance.now() - begin)
    return result
  }
  await timed('publish and queue', () => publishRun(context))
  const reference = `own ${number}`
  await move(context, await timed('claim', () => claim(context)), 'waiting_for_event', { type: 'event', reference })
  const woken = await timed('wake', () => signalRuns(context, SCOPE, { id: reference, type: 'event', reference }))
  if (woken !== 1) throw new Error(`${woken} runs were woken`)
  await timed('list page', () => listRuns(context.store.database, SCOPE, {}, 'scheduler', { limit: 50 }))
  await move(context, await claim(context), 'completed')
}

/** In turn with many and with few, so that what else the machine does strikes both. */
export async function compareDormant(
  open: () => Place,
  count: number,
  operations: number,
): Promise<Record<string, string | number>[]> {
  const place = open()
  const beds: { bed: Bed; times: Times }[] = []
  for (const [at, size] of [
    [place, count],
    [open(), count / SHARE],
  ] as const) {
    beds.push({ bed: await makeBed(at, size), times: noTimes() })
  }
  const cycles = async (from: number, to: number): Promise<void> => {
    for (let number = from; number < to; number++) {
      for (const { bed, times } of beds) await cycle(bed.context, number, times)
    }
  }
  await cycles(0, WARM_UP)
  for (const one of beds) one.times = noTimes()
  await cycles(WARM_UP, WARM_UP + operations)
  for (const { bed } of beds) await bed.close()
  const [many, few] = beds.map(({ times }) => times)
  return OPERATIONS.map((operation) => {
    const [p95, less] = [many, few].map((times) => quantiles(times?.[operation] ?? []).p95)
    const ratio = round((p95 ?? NaN) / (less ?? NaN))
    return {
      database: place.name,
      operation,
      [`${count} dormant`]: p95 ?? NaN,
      [`${count / SHARE} dormant`]: less ?? NaN,
      ratio,
    }
  })
}
