import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Database, Queryable } from '../../src/database/database.ts'
import { findExpired, listApprovals } from '../../src/kernel/store/approvals.ts'
import { listActivations } from '../../src/kernel/store/activations.ts'
import { listBindings, listBoundAgents } from '../../src/kernel/store/bindings.ts'
import {
  findCallByKey,
  findLapsedCalls,
  findReadyCall,
  findTwin,
  listCalls,
  lockOpenCalls,
} from '../../src/kernel/store/calls.ts'
import { listDependencies, settleChild } from '../../src/kernel/store/dependencies.ts'
import { listAmendments, listCompilations, listDeployed } from '../../src/kernel/store/deployments.ts'
import { appendEvents, listEvents, type EventFilter } from '../../src/kernel/store/events.ts'
import { listObjectives } from '../../src/kernel/store/objectives.ts'
import { listProjects } from '../../src/kernel/store/projects.ts'
import { findRequestOfChild, listRequests } from '../../src/kernel/store/requests.ts'
import { findDecisionRuns, findUndecided } from '../../src/kernel/store/request-runs.ts'
import { listDue, listNotDue, readSlotBlocks } from '../../src/kernel/store/run-admission.ts'
import { findBare, findLiveDescendants, listCascades } from '../../src/kernel/store/run-cascades.ts'
import { findClaimable, markDue } from '../../src/kernel/store/run-claims.ts'
import { findOverdueEscalations } from '../../src/kernel/store/run-escalations.ts'
import { endLeases, grantLeases, lapseLeases } from '../../src/kernel/store/run-leases.ts'
import { findDueTimers, findNextWake, findWaiting } from '../../src/kernel/store/run-wakes.ts'
import { listRuns, saveRun, type RunFilter, type RunOrder } from '../../src/kernel/store/runs.ts'
import { findFullQueue, freeSlots, setSlot, takeSlots } from '../../src/kernel/store/slots.ts'
import { findTurn, insertTurn, listTurns, storeOutcome } from '../../src/kernel/store/turns.ts'
import { listWorkers, purgeWorkers } from '../../src/kernel/store/workers.ts'
import { hasPostgres } from '../support/postgres.ts'
import { fillTables, idOf, plansOf, SCOPE } from './query-plans-support.ts'
import { createStorePlace, eventOf, fixture, runOf, turnOf } from './support.ts'

/** Every list, claim, wake, timer, expiry and reconciler finds its rows by the index that it names. Contract: kernel-1.md 15 */

/** What is found is few rows by its nature, and may be brought into another order. */
const FEW = 'few'
/** Later than all that the tables hold. */
const NOW = 1_900_000_000_000
const LATER = { limit: 50, after: [0, 1_700_000_050_000, idOf('r', 50_000)] }
const PAGE = { limit: 50 }
const AFTER = { limit: 50, after: [1_700_000_050_000, idOf('r', 50_000)] }
const LIMITS = { agent: 1, owner: 0, objective: 0, concurrency_key: 0 }
const [RUN, OBJECTIVE, PROJECT] = [idOf('r', 700), idOf('o', 700), idOf('p', 700)]
const AGENT = idOf('agent ', 70)
const OWNER = { type: 'agent' as const, id: idOf('owner ', 7) }
const run = runOf(fixture(), { scope: SCOPE, id: RUN })
const turn = turnOf(fixture(), { scope: SCOPE, runId: RUN, id: idOf('t', 3500) })
const event = eventOf(fixture(), { scope: SCOPE, runId: RUN })
const asking = { kinds: ['agent_work' as const], limits: LIMITS, knownAgents: true, now: NOW }

/** `a|b`: either. */
type Case = [name: string, indexes: string[], fn: (db: Queryable) => Promise<unknown>, isFew?: typeof FEW]

const ofRuns = (name: string, filter: RunFilter, index: string, order: RunOrder = 'scheduler'): Case[] => [
  [`runs ${name}`, [index], (db) => listRuns(db, SCOPE, filter, order, PAGE)],
  [
    `runs ${name}, further page`,
    [index],
    (db) => listRuns(db, SCOPE, filter, order, order === 'scheduler' ? LATER : AFTER),
  ],
]

const ofEvents = (name: string, filter: EventFilter, index: string): Case[] =>
  (['asc', 'desc'] as const).map((order): Case => [
    `activity ${name} ${order}`,
    [index],
    (db) => listEvents(db, SCOPE, filter, { order, after: 50_000, limit: 25, details: true }),
  ])

const CASES: Case[] = [
  ...ofRuns('in order', {}, 'kernel_runs_in_order'),
  ...ofRuns('by age', {}, 'kernel_runs_by_age', 'created_desc'),
  ...ofRuns('in a state', { status: ['sleeping'] }, 'kernel_runs_by_status'),
  ...ofRuns('of an objective', { objectiveId: OBJECTIVE }, 'kernel_runs_by_objective'),
  ...ofRuns('of a project', { projectId: PROJECT }, 'kernel_runs_by_project'),
  ...ofRuns('of a parent', { parentRunId: RUN }, 'kernel_runs_by_parent'),
  ...ofRuns('of a root', { rootRunId: RUN }, 'kernel_runs_by_root'),
  ...ofRuns('of an agent', { assignedAgentId: AGENT }, 'kernel_runs_by_agent'),
  ...ofRuns('of an owner', { owner: OWNER }, 'kernel_runs_by_owner'),
  ['due runs are marked', ['kernel_runs_not_due'], (db) => markDue(db, SCOPE, NOW)],
  ['leases lapse', ['kernel_run_leases_to_end'], (db) => lapseLeases(db, SCOPE, NOW), FEW],
  [
    'claim',
    [
      'kernel_runs_to_claim',
      'kernel_run_leases_ended',
      'kernel_runs_pkey|kernel_runs_by_status',
      'kernel_run_slots_pkey',
      'kernel_slots_pkey',
    ],
    (db) => findClaimable(db, SCOPE, { ...asking, left: true }, 2),
    FEW,
  ],
  ['slots are taken', ['kernel_run_slots_pkey'], (db) => takeSlots(db, SCOPE, [run], LIMITS), FEW],
  ['slots are freed', ['kernel_run_slots_pkey'], (db) => freeSlots(db, SCOPE, [run]), FEW],
  [
    'the queue of an agent',
    ['kernel_slots_pkey', 'kernel_runs_by_status|kernel_runs_by_agent|kernel_runs_by_owner'],
    async (db) => {
      await setSlot(db, SCOPE, { kind: 'agent', name: AGENT, capacity: null, maxQueued: 5, closed: false })
      await findFullQueue(db, SCOPE, AGENT)
    },
  ],
  ['leases are granted', [], (db) => grantLeases(db, SCOPE, [run], { owner: 'w', now: NOW, leaseMs: 1 })],
  ['leases end', ['kernel_run_leases_pkey'], (db) => endLeases(db, SCOPE, [run])],
  ['runs are saved', ['kernel_runs_pkey'], (db) => saveRun(db, run, NOW)],
  ['turns are begun', ['kernel_run_leases_pkey'], (db) => insertTurn(db, turn, 1)],
  [
    'outcomes are stored',
    ['kernel_turns_pkey|kernel_turns_key', 'kernel_run_leases_pkey'],
    (db) => storeOutcome(db, { turn }, { fencingToken: 1, now: NOW }),
  ],
  [
    'runs that wait',
    ['kernel_runs_by_wake'],
    (db) => findWaiting(db, SCOPE, { type: 'event', reference: 'event 7', limit: 100 }),
    FEW,
  ],
  ['timers', ['kernel_runs_by_timer'], (db) => findDueTimers(db, NOW, 100)],
  ['overdue escalations', ['kernel_runs_to_escalate'], (db) => findOverdueEscalations(db, NOW, 100)],
  ['next wake', ['kernel_runs_by_scope_timer', 'kernel_runs_not_due'], (db) => findNextWake(db, SCOPE)],
  [
    'descendants',
    ['kernel_runs_by_parent'],
    (db) => findLiveDescendants(db, SCOPE, { id: RUN, status: 'canceled' }, 100),
    FEW,
  ],
  [
    'what hangs on runs',
    [
      'kernel_calls_by_run|kernel_calls_.*key',
      'kernel_requests_by_child',
      'kernel_requests_by_source',
      'kernel_runs_by_parent',
    ],
    (db) => findBare(db, SCOPE, [run]),
    FEW,
  ],
  ['cascades', ['kernel_run_cascades_pkey'], (db) => listCascades(db, SCOPE, 100)],
  [
    'admission: due',
    [
      'kernel_runs_to_claim',
      'kernel_runs_not_due',
      'kernel_run_leases_to_end',
      'kernel_run_leases_ended',
      'kernel_runs_pkey|kernel_runs_by_status',
    ],
    (db) => listDue(db, SCOPE, asking, { blocked: false, limit: 100 }),
    FEW,
  ],
  [
    'admission: not due',
    ['kernel_runs_not_due', 'kernel_run_leases_to_end'],
    (db) => listNotDue(db, SCOPE, asking, 100),
    FEW,
  ],
  [
    'admission: blocks',
    ['kernel_run_slots_pkey', 'kernel_slots_pkey', 'kernel_run_leases_to_end', 'kernel_run_leases_to_end'],
    (db) => readSlotBlocks(db, SCOPE, [RUN], asking),
    FEW,
  ],
  ['turns', ['kernel_turns_key'], (db) => listTurns(db, SCOPE, { runId: RUN, limit: 50 })],
  ['a turn', ['kernel_turns_key'], (db) => findTurn(db, SCOPE, RUN, 1)],
  ['dependencies', ['kernel_dependencies_pkey'], (db) => listDependencies(db, SCOPE, idOf('g', 7)), FEW],
  ['a child ends', ['kernel_dependencies_by_child'], (db) => settleChild(db, SCOPE, RUN, 'succeeded')],
  ['calls', ['kernel_calls_in_order'], (db) => listCalls(db, SCOPE, {}, PAGE)],
  ['calls of a run', ['kernel_calls_by_run'], (db) => listCalls(db, SCOPE, { runId: RUN }, PAGE)],
  [
    'calls of a deployment',
    ['kernel_calls_by_deployment'],
    (db) => listCalls(db, SCOPE, { deploymentId: AGENT }, AFTER),
  ],
  ['the next call', ['kernel_calls_to_claim'], (db) => findReadyCall(db, SCOPE, NOW)],
  [
    'calls left',
    ['kernel_call_leases_to_end', 'kernel_calls_pkey|kernel_calls_to_claim'],
    (db) => findLapsedCalls(db, SCOPE, NOW, 100),
    FEW,
  ],
  ['open calls', ['kernel_calls_by_run'], (db) => lockOpenCalls(db, SCOPE, RUN)],
  ['a call by its key', ['kernel_calls_key'], (db) => findCallByKey(db, SCOPE, RUN, 'key')],
  ['a twin', ['kernel_calls_by_external_digest'], (db) => findTwin(db, SCOPE, 'digest')],
  ['approvals', ['kernel_approvals_in_order'], (db) => listApprovals(db, SCOPE, {}, 'created_desc', AFTER)],
  [
    'approvals in a state',
    ['kernel_approvals_by_status'],
    (db) => listApprovals(db, SCOPE, { status: ['pending'] }, 'created_asc', PAGE),
  ],
  [
    'approvals of a run',
    ['kernel_approvals_by_run'],
    (db) => listApprovals(db, SCOPE, { runId: RUN }, 'created_asc', PAGE),
  ],
  [
    'approvals of an owner',
    ['kernel_approvals_by_owner'],
    (db) => listApprovals(db, SCOPE, { owner: OWNER }, 'created_asc', PAGE),
  ],
  ['approvals that expire', ['kernel_approvals_to_end'], (db) => findExpired(db, NOW, 100)],
  ['requests', ['kernel_requests_in_order'], (db) => listRequests(db, SCOPE, {}, AFTER)],
  ['requests of a run', ['kernel_requests_by_source'], (db) => listRequests(db, SCOPE, { sourceRunId: RUN }, PAGE)],
  [
    'requests by somebody',
    ['kernel_requests_by_requester'],
    (db) => listRequests(db, SCOPE, { requester: { type: 'agent', id: '1000007' } }, PAGE),
  ],
  [
    'requests to somebody',
    ['kernel_requests_by_recipient'],
    (db) => listRequests(db, SCOPE, { recipient: { type: 'agent', id: '1000007' } }, PAGE),
  ],
  [
    'requests in a state',
    ['kernel_requests_by_status'],
    (db) => listRequests(db, SCOPE, { status: ['pending'] }, PAGE),
  ],
  ['the request of a child', ['kernel_requests_by_child'], (db) => findRequestOfChild(db, SCOPE, RUN)],
  [
    'decision runs',
    ['kernel_request_runs_open', 'kernel_runs_pkey', 'kernel_requests_pkey'],
    (db) => findDecisionRuns(db, SCOPE, 100),
  ],
  [
    'undecided requests',
    ['kernel_requests_by_status', 'kernel_request_runs_pkey'],
    (db) => findUndecided(db, SCOPE, { limit: 100 }),
    FEW,
  ],
  ['events are written', [], (db) => appendEvents(db, [event, event])],
  ...ofEvents('of a scope', {}, 'kernel_events_pkey'),
  ...ofEvents('of a type', { eventType: ['run.created'] }, 'kernel_events_by_type'),
  ...ofEvents('of a run', { runId: RUN }, 'kernel_events_by_run'),
  ...ofEvents('of an agent', { agentId: AGENT }, 'kernel_events_by_agent'),
  ...ofEvents('of an objective', { objectiveId: OBJECTIVE }, 'kernel_events_by_objective'),
  ...ofEvents('of a team', { teamId: idOf('team ', 7) }, 'kernel_events_by_team'),
  ...ofEvents('of a project', { projectId: PROJECT }, 'kernel_events_by_project'),
  ...ofEvents('of a conversation', { conversationId: idOf('conversation ', 7) }, 'kernel_event_conversations_pkey'),
  ['objectives', ['kernel_objectives_in_order'], (db) => listObjectives(db, SCOPE, {}, { ...PAGE, now: NOW })],
  [
    'objectives of an owner',
    ['kernel_objectives_by_owner'],
    (db) => listObjectives(db, SCOPE, { owner: OWNER }, { ...PAGE, now: NOW }),
  ],
  [
    'objectives in a state',
    ['kernel_objectives_by_status'],
    (db) => listObjectives(db, SCOPE, { status: ['draft'] }, { ...PAGE, now: NOW }),
  ],
  [
    'objectives that changed while they were walked',
    ['kernel_objectives_by_recency', 'kernel_events_by_objective'],
    (db) => listObjectives(db, SCOPE, {}, { ...PAGE, now: NOW, after: [NOW, 1, 5] }),
  ],
  [
    'objectives of a walk that goes on',
    ['kernel_objectives_in_order', 'kernel_events_by_objective'],
    (db) => listObjectives(db, SCOPE, {}, { ...PAGE, now: NOW, after: [NOW, 0, 5, -1, -NOW, 'a'] }),
  ],
  [
    'projects that changed while they were walked',
    ['kernel_projects_in_order', 'kernel_events_by_project'],
    (db) => listProjects(db, SCOPE, {}, { ...PAGE, now: NOW, after: [NOW, 1, 5] }),
  ],
  ['projects', ['kernel_projects_in_order'], (db) => listProjects(db, SCOPE, {}, { ...PAGE, now: NOW })],
  [
    'projects of an owner',
    ['kernel_projects_by_owner'],
    (db) => listProjects(db, SCOPE, { owner: OWNER }, { ...PAGE, now: NOW }),
  ],
  [
    'projects in a state',
    ['kernel_projects_by_status'],
    (db) => listProjects(db, SCOPE, { status: ['draft'] }, { ...PAGE, now: NOW }),
  ],
  [
    'agents',
    ['kernel_agent_deployments_pkey', 'kernel_definitions_pkey'],
    (db) => listDeployed(db, 'agent', SCOPE, { limit: 32 }),
  ],
  [
    'agents and their skills',
    ['kernel_agent_deployments_pkey', 'kernel_bindings_by_deployment'],
    (db) => listBoundAgents(db, SCOPE, { after: '', limit: 100 }),
  ],
  [
    'skills of an agent',
    ['kernel_bindings_by_deployment'],
    (db) => listBindings(db, SCOPE, { family: 'agent', deploymentId: AGENT }),
  ],
  ['activations', ['kernel_activations_pkey'], (db) => listActivations(db, 'agent', SCOPE, AGENT, { limit: 50 })],
  ['amendments', ['kernel_amendments_by_deployment'], (db) => listAmendments(db, 'agent', SCOPE, AGENT, { limit: 50 })],
  ['compilations', ['kernel_compilations_by_deployment'], (db) => listCompilations(db, SCOPE, AGENT, { limit: 50 })],
  ['workers', ['kernel_workers_pkey|kernel_workers_by_age'], (db) => listWorkers(db, SCOPE, NOW), FEW],
  ['workers long gone', ['kernel_workers_by_age'], (db) => purgeWorkers(db, 1_700_000_000_100)],
]

/** SQLite knows nothing of how rows are spread: it goes about few as about many. */
describe.each([
  ['sqlite', 1000],
  ['postgres', 20_000],
] as const)('the plans of %s over tables with twice %i rows', (driver, rows) => {
  const isThere = driver === 'sqlite' || hasPostgres
  let database: Database
  let remove = async (): Promise<void> => {}

  beforeAll(async () => {
    if (!isThere) return
    const place = await createStorePlace(driver)
    const store = await place.open()
    database = store.database
    remove = () => store.close().then(place.remove)
    await fillTables(database, rows)
  }, 120_000)
  afterAll(() => remove())

  test.skipIf(!isThere).each(CASES)('%s', async (_name, indexes, fn, isFew) => {
    const plans = await plansOf(database, fn)
    const used = new Set(plans.flatMap((plan) => plan.indexes))
    const isKey = (index: string): boolean => index.endsWith('_pkey')
    expect({
      scanned: plans.flatMap((plan) => plan.scanned),
      sorted: isFew !== FEW && plans.some((plan) => plan.sorts),
      missing: indexes.filter((either) => !either.split('|').some((index) => used.has(index))),
      others: [...used].filter(
        (index) => !isKey(index) && !indexes.some((either) => either.split('|').includes(index)),
      ),
    }).toEqual({ scanned: [], sorted: false, missing: [], others: [] })
  })
})
