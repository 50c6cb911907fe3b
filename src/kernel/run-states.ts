import { toTimestamp } from '../base/clock.ts'
import { conflict } from './errors.ts'
import type { Run, RunStatus, WakeCondition } from './model/run.ts'

/** The life of a run. Contract: kernel-1.md 6.2. */

const WAITING = ['waiting_for_dependency', 'waiting_for_agent', 'waiting_for_approval', 'waiting_for_event'] as const
const FROM_WAITING = ['queued', 'running', 'paused', ...WAITING, 'failed', 'canceled'] as const

const MOVES: Record<RunStatus, readonly RunStatus[]> = {
  queued: ['planning', 'running', 'paused', 'waiting_for_agent', 'canceled'],
  planning: ['running', 'paused', 'waiting_for_agent', 'waiting_for_approval', 'failed', 'canceled'],
  running: ['queued', 'running', 'paused', 'sleeping', ...WAITING, 'completed', 'failed', 'canceled'],
  paused: ['queued', 'sleeping', ...WAITING, 'canceled'],
  sleeping: ['queued', 'running', 'paused', 'waiting_for_agent', 'canceled'],
  waiting_for_dependency: FROM_WAITING,
  waiting_for_agent: FROM_WAITING,
  waiting_for_approval: FROM_WAITING,
  waiting_for_event: FROM_WAITING,
  completed: [],
  failed: [],
  canceled: [],
}

export const isTerminal = (status: RunStatus): boolean => MOVES[status].length === 0

/** Sleeping, or waiting for something. */
export const isWaiting = (status: RunStatus): boolean => status === 'sleeping' || status.startsWith('waiting_')

export interface Move {
  to: RunStatus
  /** Epoch ms. */
  now: number
  /** What to wait for; needed to wait or sleep, and only then. */
  wake?: WakeCondition
  /** Into the queue, but not to be claimed before; epoch ms. */
  availableAt?: number
  /** Who recovered the run runs it again, or an accepted handoff completes what waited for it. */
  handoff?: boolean
}

/**
 * The run in its next state, with what follows from the state alone; a pause has its own function.
 * @throws conflict when the move is illegal
 */
export function moveRun(run: Run, { to, now, wake, availableAt, handoff = false }: Move): Run {
  const isHandedOff = handoff && to === 'completed' && run.status.startsWith('waiting_')
  if (!isHandedOff && !MOVES[run.status].includes(to)) throw conflict(`a ${run.status} run cannot become ${to}`)
  if (isWaiting(to) !== (wake !== undefined))
    throw new Error(`a move to ${to} with${wake ? '' : 'out'} a wake condition`)
  const { wakeCondition: _w, pausedFrom: _f, pausedWakeCondition: _c, pauseReason: _r, ...rest } = run
  const at = toTimestamp(now)
  return {
    ...rest,
    status: to,
    ...(wake && { wakeCondition: wake }),
    ...(to === 'queued' && { queueEnteredAt: at, availableAt: toTimestamp(Math.max(now, availableAt ?? now)) }),
    ...(to === 'running' && run.startedAt === undefined && { startedAt: at }),
    ...(isTerminal(to) && { completedAt: at }),
  }
}

/**
 * The run paused: it remembers where it stood. A turn under way is not gone back to, so one that ran is queued again.
 * @throws conflict when it is paused or at its end
 */
export function pauseRun(run: Run, reason: NonNullable<Run['pauseReason']>): Run {
  if (!MOVES[run.status].includes('paused')) throw conflict(`a ${run.status} run cannot be paused`)
  const { wakeCondition, ...rest } = run
  return {
    ...rest,
    status: 'paused',
    pausedFrom: isWaiting(run.status) ? run.status : 'queued',
    ...(wakeCondition && { pausedWakeCondition: wakeCondition }),
    pauseReason: reason,
  }
}

/** The run back in the wait it was paused in, else in the queue. @throws conflict when it is not paused */
export function resumeRun(run: Run, now: number): Run {
  if (run.status !== 'paused') throw conflict(`a ${run.status} run cannot be resumed`)
  const { pausedFrom = 'queued', pausedWakeCondition: wake } = run
  return wake ? moveRun(run, { to: pausedFrom, now, wake }) : moveRun(run, { to: 'queued', now })
}

/**
 * The run after what it waited for: in the queue, or, while paused, remembering the queue.
 * @throws conflict when it waits for nothing
 */
export function wakeRun(run: Run, now: number): Run {
  if (run.status !== 'paused') return moveRun(run, { to: 'queued', now })
  const { pausedWakeCondition, ...rest } = run
  if (!pausedWakeCondition) throw conflict('the run waits for nothing')
  return { ...rest, pausedFrom: 'queued' }
}

/** The run waiting for something else than before; while paused, remembering that. @throws conflict when it may not wait */
export const waitRun = (run: Run, to: RunStatus, wake: WakeCondition, now: number): Run =>
  run.status === 'paused' && isWaiting(to)
    ? { ...run, pausedFrom: to, pausedWakeCondition: wake }
    : moveRun(run, { to, now, wake })
