import { tame } from '../../base/tame.ts'
import type { ActionCall, Approval } from '../../kernel/model/action.ts'
import type { ActivityEvent } from '../../kernel/model/event.ts'
import type { Run } from '../../kernel/model/run.ts'
import type { Turn } from '../../kernel/model/turn.ts'
import { isTerminal } from '../../kernel/run-states.ts'
import { listApprovals } from '../../kernel/store/approvals.ts'
import { listCalls } from '../../kernel/store/calls.ts'
import { listEvents } from '../../kernel/store/events.ts'
import { readRecord } from '../../kernel/store/records.ts'
import { listRuns, runs } from '../../kernel/store/runs.ts'
import { listTurns } from '../../kernel/store/turns.ts'
import type { Page, PageRequest } from '../pages/page.ts'
import { scopeOf, shared, type KernelConsole } from './kernel.ts'

/** What of a run one page shows. */
const LATEST = 100

type Entry =
  | { kind: 'turn'; at: string; turn: Turn }
  | { kind: 'call'; at: string; call: ActionCall; approval?: Approval }
  | { kind: 'event'; at: string; event: ActivityEvent }

/** Told by turns, calls and approvals themselves. */
const TOLD = /^(?:turn|action|approval|budget)\.|^run\.(?:claimed|transitioned)$/

/** One run: what it is, where it stands, what it did. @throws not_found */
export async function runPage(console: KernelConsole, request: PageRequest): Promise<Page> {
  const data = await runData(console, request)
  return { template: './kernel/run', title: tame(data.run.goal.slice(0, 80)), data }
}

/** The parts of the page that change while the run goes on. @throws not_found */
export async function runData(
  console: KernelConsole,
  request: PageRequest,
): Promise<{ run: Run; [part: string]: unknown }> {
  const scope = scopeOf(console, request.query('scope'))
  const { store, newId } = console.kernel.context
  const { database } = store
  const run = await readRecord(database, runs, scope, request.param('id'))
  const runId = run.id
  const [turns, calls, approvals, events, children] = await Promise.all([
    listTurns(database, scope, { runId, afterSequence: Math.max(0, run.lastAppliedTurn - LATEST), limit: LATEST + 1 }),
    listCalls(database, scope, { runId }, { limit: LATEST }, 'created_desc'),
    listApprovals(database, scope, { runId }, 'created_desc', { limit: LATEST }),
    listEvents(database, scope, { runId }, { order: 'desc', limit: 2 * LATEST, details: true }),
    listRuns(database, scope, { parentRunId: runId }, 'scheduler', { limit: LATEST }),
  ])
  return {
    ...shared(console, scope),
    run,
    isOver: isTerminal(run.status),
    timeline: timelineOf(
      turns.items,
      calls.items,
      approvals.items,
      events.map(({ event }) => event),
    ),
    pending: approvals.items.filter(({ status }) => status === 'pending'),
    questions: run.humanInterventions.filter(({ status }) => status === 'pending'),
    bounds: boundsOf(run),
    children: children.items,
    /** Turns before the first one that is shown. */
    earlier: (turns.items[0]?.sequence ?? 1) - 1,
    // The forms stay those that were shown first, so that one that is sent twice is done once.
    operation: request.query('operation') ?? newId(),
  }
}

function timelineOf(
  turns: readonly Turn[],
  calls: readonly ActionCall[],
  approvals: readonly Approval[],
  events: readonly ActivityEvent[],
): Entry[] {
  const byCall = new Map(approvals.map((approval) => [approval.actionCallId, approval]))
  const entries: Entry[] = [
    ...turns.map((turn): Entry => ({ kind: 'turn', at: turn.startedAt, turn })),
    ...calls.map((call): Entry => {
      const approval = byCall.get(call.id)
      return { kind: 'call', at: call.createdAt, call, ...(approval && { approval }) }
    }),
    ...events
      .filter(({ eventType, payload }) => !TOLD.test(eventType) || payload?.['code'] === 'internal_error')
      .map((event): Entry => ({ kind: 'event', at: event.createdAt, event })),
  ]
  return entries.sort((a, b) => (a.at < b.at ? -1 : Number(a.at > b.at)))
}

/** What of its budget a run has used, by dimension. */
function boundsOf({ budget = {}, budgetUsage: usage }: Run): { name: string; used: number; limit: number }[] {
  const { inputTokens = 0, outputTokens = 0 } = usage
  const used: Record<string, number | undefined> = {
    maxAttempts: usage.attempts,
    maxTurns: usage.turns,
    maxInputTokens: inputTokens,
    maxOutputTokens: outputTokens,
    maxTotalTokens: inputTokens + outputTokens,
    maxCostMicros: usage.costMicros,
    maxDurationMs: usage.durationMs,
    maxActions: usage.actions,
  }
  return Object.entries(budget).flatMap(([name, limit]) =>
    name === 'warningPermille' ? [] : [{ name, used: used[name] ?? 0, limit }],
  )
}
