import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BY_KERNEL, makeChange } from '../../src/kernel/change.ts'
import { KernelError } from '../../src/kernel/errors.ts'
import { RUN_COMMANDS, type Run, type RunStatus } from '../../src/kernel/model/run.ts'
import { isTerminal, isWaiting, moveRun } from '../../src/kernel/run-states.ts'
import { reconcileCascades } from '../../src/kernel/runs/cancel.ts'
import { commandRun } from '../../src/kernel/runs/command.ts'
import { createRun } from '../../src/kernel/runs/create.ts'
import { saveMoved } from '../../src/kernel/runs/save.ts'
import { signalRuns, wakeDueRuns } from '../../src/kernel/runs/wake.ts'
import { lockRecord } from '../../src/kernel/store/records.ts'
import { runs } from '../../src/kernel/store/runs.ts'
import { scopeKey } from '../../src/kernel/store/scope-key.ts'
import { describeKernels } from './api.ts'
import { ANA, RunBench, WAITS } from './runs-support.ts'

const nth = fc.nat(5)
const step = fc.oneof(
  fc.record({ do: fc.constant('create' as const), child: fc.boolean(), of: nth, key: fc.boolean() }),
  fc.record({ do: fc.constant('command' as const), kind: fc.constantFrom(...RUN_COMMANDS), of: nth }),
  fc.record({
    do: fc.constant('signal' as const),
    type: fc.constantFrom('event', 'approval', 'agent_request'),
    id: nth,
  }),
  fc.record({
    do: fc.constant('turn' as const),
    to: fc.constantFrom('queued', 'completed', 'failed', ...(Object.keys(WAITS) as (keyof typeof WAITS)[])),
  }),
  fc.record({ do: fc.constant('claim' as const) }),
  fc.record({ do: fc.constant('time' as const), ms: fc.constantFrom(1000, 31_000) }),
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

const LIMITS = { agent: 2, concurrency_key: 1 }

/** Carries out one step; a refusal is as good as an effect. */
async function take(desk: RunBench, taken: Step): Promise<void> {
  const { context } = desk.open.kernel
  const change = <T>(fn: Parameters<typeof makeChange<T>>[3]) => makeChange(context, desk.scope, BY_KERNEL, fn)
  const all = await desk.all()
  switch (taken.do) {
    case 'create': {
      const parentRunId = taken.child ? all[taken.of % all.length]?.id : undefined
      await change((made) =>
        createRun(made, {
          owner: ANA,
          goal: 'Count',
          ...(parentRunId !== undefined && { parentRunId }),
          ...(taken.key && { concurrencyKey: 'k' }),
        }),
      )
      return
    }
    case 'command': {
      const run = all[taken.of % all.length]
      const { kind } = taken
      if (!run) return
      const more = kind === 'intervene' ? { instruction: 'Go on' } : {}
      await change((made) => commandRun(made, run.id, { expectedRevision: run.revision, kind, ...more }))
      return
    }
    case 'signal': {
      const { reference } = {
        event: WAITS.waiting_for_event,
        approval: WAITS.waiting_for_approval,
        agent_request: WAITS.waiting_for_agent,
      }[taken.type]
      const payload = { folder: 'in' }
      await signalRuns(context, desk.scope, { id: `s${taken.id}`, type: taken.type, reference, payload })
      return
    }
    case 'turn': {
      const running = all.find(({ status }) => status === 'running')
      if (!running) return
      const { to } = taken
      const wake =
        to in WAITS
          ? { wake: { ...WAITS[to as keyof typeof WAITS], ...(to === 'sleeping' && { wakeAt: desk.open.at(5000) }) } }
          : {}
      await change(async (made) => {
        const before = await lockRecord(made.tx, runs, desk.scope, running.id)
        return saveMoved(made, before, moveRun(before, { to, now: made.now, ...wake }))
      })
      return
    }
    case 'claim':
      await desk.claim(LIMITS)
      return
    case 'time':
      desk.open.advance(taken.ms)
      await wakeDueRuns(context)
  }
}

/** What is wrong with a run as it stands. */
function faultsOf(run: Run, all: readonly Run[], isSettled: boolean): string[] {
  const faults: string[] = []
  const must = (holds: boolean, fault: string): void => void (holds || faults.push(`${run.status}: ${fault}`))
  must(isWaiting(run.status) === (run.wakeCondition !== undefined), 'a wake condition exactly while it waits')
  must((run.status === 'running') === (run.leaseOwner !== undefined), 'a lease exactly while it runs')
  must((run.status === 'paused') === (run.pausedFrom !== undefined), 'remembers a state exactly while paused')
  must((run.status === 'paused') === (run.pauseReason !== undefined), 'a reason exactly while paused')
  const remembers = run.pausedFrom !== undefined && isWaiting(run.pausedFrom)
  must(remembers === (run.pausedWakeCondition !== undefined), 'remembers a condition exactly with a wait')
  must(isTerminal(run.status) === (run.completedAt !== undefined), 'completed exactly at its end')
  const parent = all.find(({ id }) => id === run.parentRunId)
  if (parent && isSettled && isTerminal(parent.status)) must(isTerminal(run.status), 'outlives its parent')
  if (parent) must(run.rootRunId === parent.rootRunId, 'another root than its parent')
  return faults
}

async function slots(desk: RunBench): Promise<{ counted: unknown; held: unknown }> {
  const scope = [scopeKey(desk.scope)]
  return {
    counted: await desk.db.all(
      'SELECT kind, name, active FROM kernel_slots WHERE scope = $1 AND active <> 0 ORDER BY kind, name',
      scope,
    ),
    held: await desk.db.all(
      `SELECT n.kind, n.name, CAST(SUM(n.amount) AS BIGINT) AS active FROM kernel_run_leases l
         JOIN kernel_run_slots n ON n.scope = l.scope AND n.run_id = l.run_id
        WHERE l.scope = $1 AND l.held = 1 GROUP BY n.kind, n.name ORDER BY n.kind, n.name`,
      scope,
    ),
  }
}

describeKernels('any sequence of commands and signals', (open) => {
  test('leaves every run in a legal state, ends for good, slots that add up, and events without gaps', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
        const desk = new RunBench(open())
        const ended = new Map<string, RunStatus>()
        for (const taken of steps) {
          await take(desk, taken).catch((error: unknown) => {
            if (!(error instanceof KernelError)) throw error
          })
          const all = await desk.all()
          expect(all.flatMap((run) => faultsOf(run, all, false))).toEqual([])
          for (const { id, status } of all) {
            expect(status).toBe(ended.get(id) ?? status)
            if (isTerminal(status)) ended.set(id, status)
          }
          const { counted, held } = await slots(desk)
          expect(counted).toEqual(held)
        }
        await reconcileCascades(desk.open.kernel.context, desk.scope)
        const all = await desk.all()
        expect(all.flatMap((run) => faultsOf(run, all, true))).toEqual([])
        const numbers = await desk.db.all<{ stream: string; amount: number; last: number }>(
          `SELECT stream, COUNT(*) AS amount, MAX(sequence) AS last FROM kernel_events WHERE scope = $1 GROUP BY stream`,
          [scopeKey(desk.scope)],
        )
        expect(numbers.filter(({ amount, last }) => amount !== last)).toEqual([])
      }),
      { numRuns: open().place.driver === 'memory' ? 60 : 10, seed: 7 },
    )
  }, 120_000)
})
