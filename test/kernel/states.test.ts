import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cancelApproval, decide, isOver, timeOut } from '../../src/kernel/approval-states.ts'
import { backoffMs, finishAttempt, moveCall, type Outcome } from '../../src/kernel/call-states.ts'
import { KernelError } from '../../src/kernel/errors.ts'
import { createUuidSource } from '../../src/base/ids.ts'
import { CALL_STATES, DECISIONS, type SideEffect } from '../../src/kernel/model/action.ts'
import { RUN_STATES, type Run, type RunStatus, type WakeCondition } from '../../src/kernel/model/run.ts'
import { isTerminal, isWaiting, moveRun, pauseRun, resumeRun, wakeRun } from '../../src/kernel/run-states.ts'
import { matches } from '../../src/kernel/wake.ts'
import { approvalOf, callOf, fixture, runOf } from './support.ts'

const SEED = 20261122
const open = fixture()
const scope = { kind: 'a', id: 'b' }
const NOW = open.place.clock.now()
const WAKE: WakeCondition = { type: 'event', reference: 'x' }

/** A run as it is in this state. */
const runIn = (status: RunStatus): Run => {
  const run = runOf(open, { scope, status, ...(isWaiting(status) && { wakeCondition: WAKE }) })
  return status === 'paused' ? pauseRun({ ...run, status: 'queued' }, 'command') : run
}

test('kernel#33 pause and resume from the queue, sleep and each wait return there with the condition', () => {
  for (const status of RUN_STATES.filter((one) => one === 'queued' || isWaiting(one))) {
    const before = runIn(status)
    const paused = pauseRun(before, 'command')
    expect(paused).toMatchObject({ status: 'paused', pausedFrom: status, pauseReason: 'command' })
    expect(paused).not.toHaveProperty('wakeCondition')
    expect(resumeRun(paused, NOW)).toEqual(before)
  }
  for (const status of ['paused', 'completed', 'failed', 'canceled'] as const) {
    expect(() => pauseRun(runIn(status), 'command')).toThrow(`a ${status} run cannot be paused`)
  }
  expect(resumeRun(pauseRun(runIn('running'), 'budget'), NOW)).toMatchObject({ status: 'queued' })
  expect(() => resumeRun(runIn('queued'), NOW)).toThrow(expect.objectContaining({ status: 409 }))
})

test('kernel#75 what a paused run waited for comes: it stays paused, and is queued when resumed', () => {
  const woken = wakeRun(pauseRun(runIn('waiting_for_approval'), 'command'), NOW)
  expect(woken).toMatchObject({ status: 'paused', pausedFrom: 'queued' })
  expect(resumeRun(woken, NOW)).toMatchObject({ status: 'queued' })
  expect(() => wakeRun(woken, NOW)).toThrow('waits for nothing')
})

/** Undefined where it is refused as a conflict. */
function allowed<T>(move: () => T): T | undefined {
  try {
    return move()
  } catch (error) {
    if (error instanceof KernelError && error.code === 'conflict') return undefined
    throw error
  }
}

test('whatever moves are made: ends are final, only waits have conditions, completion by handoff alone leaves a wait', () => {
  const target = fc.constantFrom(...RUN_STATES)
  fc.assert(
    fc.property(target, fc.array(target, { maxLength: 20 }), fc.boolean(), (first, targets, handoff) => {
      let run = runIn(first)
      for (const to of targets) {
        const before = run
        const next = allowed(() => moveRun(before, { to, now: NOW, handoff, ...(isWaiting(to) && { wake: WAKE }) }))
        if (!next) continue
        run = next
        expect(isTerminal(before.status)).toBe(false)
        expect(run.wakeCondition !== undefined).toBe(isWaiting(to))
        expect(run.completedAt !== undefined).toBe(isTerminal(to))
        expect(run.pausedFrom).toBeUndefined()
        const completesWait = to === 'completed' && isWaiting(before.status)
        expect(!completesWait || (handoff && before.status !== 'sleeping')).toBe(true)
        expect(to !== 'queued' || (run.queueEnteredAt === open.at() && run.availableAt === open.at())).toBe(true)
      }
    }),
    { seed: SEED },
  )
})

test('a delayed entry into the queue waits from now on, and is available later', () => {
  const run = moveRun(runIn('running'), { to: 'queued', now: NOW, availableAt: NOW + 5000 })
  expect(run).toMatchObject({ queueEnteredAt: open.at(), availableAt: open.at(5000) })
})

test('kernel#60 a condition matches on type, time, reference and each key of its predicate', () => {
  const signal = { id: 's', type: 'event', reference: 'x', payload: { a: { c: 1, b: [2] }, more: true } } as const
  const cases: [WakeCondition, boolean][] = [
    [{ type: 'event' }, true],
    [{ type: 'action' }, false],
    [{ type: 'event', reference: 'x' }, true],
    [{ type: 'event', reference: 'y' }, false],
    [{ type: 'event', wakeAt: open.at() }, true],
    [{ type: 'event', wakeAt: open.at(1) }, false],
    [{ type: 'event', predicate: { a: { b: [2], c: 1 } } }, true],
    [{ type: 'event', predicate: { a: { b: [2] } } }, false],
    [{ type: 'event', predicate: { toString: undefined } }, false],
    [{ type: 'event', predicate: { a: { b: [2], c: 1 }, gone: null } }, false],
  ]
  for (const [condition, expected] of cases) {
    const matched = matches(condition, signal, NOW)
    expect({ condition, matched }).toEqual({ condition, matched: expected })
  }
})

const outcome: fc.Arbitrary<Outcome> = fc.oneof(
  fc.constant<Outcome>({ kind: 'succeeded', output: 1 }),
  fc.constant<Outcome>({ kind: 'not_sent' }),
  fc.constant<Outcome>({ kind: 'unknown', error: 'timeout' }),
  fc.boolean().map((retryable): Outcome => ({ kind: 'failed', error: 'no', phase: 'dispatch', retryable })),
)
const RETRY = { initialBackoffMs: 1000, maxBackoffMs: 3000 }

test('kernel#66 kernel#67 an unknown outcome of what changes the world is never sent again by itself', () => {
  const effects = ['none', 'read', 'write', 'external', 'destructive'] as const satisfies SideEffect[]
  fc.assert(
    fc.property(
      fc.constantFrom(...effects),
      fc.integer({ min: 1, max: 4 }),
      fc.array(outcome, { maxLength: 8 }),
      (sideEffect, maxAttempts, outcomes) => {
        let call = callOf(open, { scope, runId: 'r', sideEffect, maxAttempts })
        for (const one of outcomes) {
          if (call.status !== 'ready') break
          const running = moveCall(call, 'running', NOW)
          call = finishAttempt(running, one, RETRY, NOW)
          const isHarmless = sideEffect === 'none' || sideEffect === 'read'
          expect(call.status === 'ambiguous').toBe(one.kind === 'unknown' && !isHarmless)
          const isRetry = call.status === 'ready' && one.kind !== 'not_sent'
          expect(!isRetry || running.attempt < maxAttempts).toBe(true)
        }
      },
    ),
    { seed: SEED },
  )
})

test('kernel#65 delays double and are capped; errors are cut', () => {
  expect([1, 2, 3, 4].map((attempt) => backoffMs(attempt, { initialBackoffMs: 1000, maxBackoffMs: 3000 }))).toEqual([
    1000, 2000, 3000, 3000,
  ])
  const running = moveCall(callOf(open, { scope, runId: 'r' }), 'running', NOW)
  const failure = { kind: 'failed', error: 'x'.repeat(2000), phase: 'dispatch', retryable: true } as const
  const failed = finishAttempt(running, failure, RETRY, NOW)
  expect(failed).toMatchObject({ status: 'ready', availableAt: open.at(1000), failurePhase: 'dispatch' })
  expect(failed.error).toHaveLength(1024)
})

test('calls at their end stay there', () => {
  for (const status of ['denied', 'succeeded', 'failed', 'canceled'] as const) {
    const call = callOf(open, { scope, runId: 'r', status })
    for (const to of CALL_STATES)
      expect(() => moveCall(call, to, NOW)).toThrow(expect.objectContaining({ status: 409 }))
  }
})

const PENDING = approvalOf(open, { scope, runId: 'r', actionCallId: 'c' })
const VERDICT = { by: { type: 'user', id: 'u' }, decisionId: 'd1', reason: 'because' }

test('kernel#71 kernel#73 a decision moves approval, call and run together', () => {
  expect(decide(PENDING, 'approve', VERDICT, NOW)).toMatchObject({
    call: 'ready',
    run: 'waiting_for_dependency',
    record: {
      status: 'approved',
      decisionBy: VERDICT.by,
      decisionId: 'd1',
      decisionReason: 'because',
      decidedAt: open.at(),
    },
  })
  expect(decide(PENDING, 'reject', VERDICT, NOW)).toMatchObject({ approval: 'rejected', call: 'denied', run: 'queued' })
  const changes = { approval: 'changes_requested', call: 'denied', run: 'queued' }
  expect(decide(PENDING, 'request_changes', VERDICT, NOW)).toMatchObject(changes)
  expect(cancelApproval(PENDING, NOW)).toMatchObject({ approval: 'canceled', call: 'canceled', run: 'canceled' })
})

test('kernel#72 kernel#74 one decision, in time; then the rule for silence', () => {
  const end = NOW + 86_400_000
  expect([isOver(PENDING, end - 1), isOver(PENDING, end)]).toEqual([false, true])
  for (const decision of DECISIONS) {
    expect(() => decide(PENDING, decision, VERDICT, end)).toThrow('time for this decision is over')
    const { record } = decide(PENDING, decision, VERDICT, end - 1)
    expect(() => decide(record, 'approve', VERDICT, NOW)).toThrow(expect.objectContaining({ status: 409 }))
    expect(() => timeOut(record, end)).toThrow(expect.objectContaining({ status: 409 }))
  }
  expect(timeOut(PENDING, end)).toMatchObject({ approval: 'expired', call: 'denied', run: 'queued' })
  const silent = timeOut({ ...PENDING, timeoutDecision: 'approve' }, end)
  expect(silent).toMatchObject({ approval: 'approved', call: 'ready', record: { status: 'approved' } })
  expect(silent.record).not.toHaveProperty('decisionBy')
})

test('ids are UUIDs of version 7, each greater than the one before, also in one millisecond and when the clock goes back', () => {
  let now = NOW
  const next = createUuidSource({ now: () => now })
  const made: string[] = []
  for (let i = 0; i < 10_000; i++) {
    made.push(next())
    if (i === 5000) now -= 1000
    if (i === 9000) now += 5000
  }
  expect(made).toEqual(made.toSorted())
  expect(new Set(made).size).toBe(made.length)
  for (const id of made.slice(0, 20))
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
})
