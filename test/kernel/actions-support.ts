import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { createDefaultAuthorizer } from '../../src/kernel/actions/authorizer.ts'
import { createSkillCatalog } from '../../src/kernel/actions/catalog.ts'
import { createFunctionTransport, type ActionHandler } from '../../src/kernel/actions/function-transport.ts'
import { createHttpTransport } from '../../src/kernel/actions/http-transport.ts'
import { prepareAction } from '../../src/kernel/actions/propose.ts'
import { recoverCalls } from '../../src/kernel/actions/recover.ts'
import { recordAction } from '../../src/kernel/actions/record.ts'
import { claimAction, type ActionWorker } from '../../src/kernel/actions/worker.ts'
import { BY_KERNEL, makeChange } from '../../src/kernel/change.ts'
import type { ActionParts } from '../../src/kernel/context.ts'
import type { ActionCall, ActionProposal } from '../../src/kernel/model/action.ts'
import type { Scope } from '../../src/kernel/model/fields.ts'
import type { Run } from '../../src/kernel/model/run.ts'
import { defaultPolicy } from '../../src/kernel/policy.ts'
import type { ActionPolicy, ProposalValidator } from '../../src/kernel/ports.ts'
import { resolveDeployment } from '../../src/kernel/registry/resolve.ts'
import { moveRun } from '../../src/kernel/run-states.ts'
import { saveMoved } from '../../src/kernel/runs/save.ts'
import { calls, listCalls } from '../../src/kernel/store/calls.ts'
import { listEvents } from '../../src/kernel/store/events.ts'
import { insertRecord, readRecord } from '../../src/kernel/store/records.ts'
import { insertRun, runs } from '../../src/kernel/store/runs.ts'
import { turns } from '../../src/kernel/store/turns.ts'
import { startEffectServer, type EffectServer } from '../support/effect-server.ts'
import type { OpenKernel, ScopedApi } from './api.ts'
import { install } from './registry-support.ts'
import { runOf, turnOf } from './support.ts'

const TEXT = {
  type: 'object',
  properties: { text: { type: 'string' } },
  required: ['text'],
  additionalProperties: false,
}

const action = (name: string, fields: object): object => ({
  name,
  description: name,
  inputSchema: TEXT,
  sideEffect: 'read',
  risk: 'read',
  idempotency: 'supported',
  ...fields,
})

/** A skill of one service, with an action for each way to fail. */
export const deskSkill = (endpoint: string, fields: { actions?: object; [more: string]: unknown } = {}): object => ({
  id: 'desk',
  version: '1.0.0',
  name: 'Desk',
  transport: { kind: 'http', endpoint },
  ...fields,
  actions: {
    look: action('look', { retry: { maxAttempts: 3 } }),
    glance: action('glance', { timeoutMs: 1000, retry: { maxAttempts: 3 } }),
    note: action('note', { sideEffect: 'write', risk: 'write' }),
    rush: action('rush', { sideEffect: 'write', risk: 'write', timeoutMs: 1000, retry: { maxAttempts: 3 } }),
    send: action('send', {
      sideEffect: 'external',
      risk: 'external',
      retry: { maxAttempts: 6, initialBackoffMs: 1000, maxBackoffMs: 4000 },
      credentials: [
        { name: 'login', kind: 'bearer' },
        { name: 'extra', kind: 'header:X-Extra', optional: true },
      ],
    }),
    book: action('book', {
      sideEffect: 'external',
      risk: 'external',
      inputSchema: { type: 'object', properties: { order: { type: 'string' }, text: { type: 'string' } } },
      semanticArguments: { operation: 'order' },
    }),
    fill: action('fill', {
      inputSchema: {
        type: 'object',
        properties: { text: { type: 'string' }, room: { type: 'string' }, copy: { type: 'string' } },
        required: ['text', 'room'],
      },
      transport: {
        kind: 'http',
        endpoint,
        arguments: { room: { literal: 'blue' }, copy: { sourceArgument: 'text' } },
      },
    }),
    here: action('here', { transport: { kind: 'function', endpoint: 'here' } }),
    checked: action('checked', {
      outputSchema: { type: 'object', properties: { count: { type: 'integer' } }, required: ['count'] },
    }),
    ...fields.actions,
  },
})

export const SECRET = 'tell-nobody-0123'
export const ALLOWED = ['look', 'glance', 'note', 'rush', 'send', 'book', 'fill', 'here', 'checked']

/** What stands around a kernel: a service, skills that use it, a policy, credentials. */
export interface Desk {
  parts: ActionParts
  service(): EffectServer
  /** Until the test ends. */
  policy(policy: ActionPolicy): void
  validators: ProposalValidator[]
  handler(handler: ActionHandler): void
}

/** Of a kernel that knows the skill `desk`, and calls nobody. */
export const idleDesk: ActionParts = {
  catalog: createSkillCatalog([deskSkill('https://desk.example.com/call')]),
  policy: defaultPolicy(),
  validators: [],
  transports: { http: createHttpTransport() },
  credentials: { resolve: async () => SECRET },
}

const ALLOW: ActionPolicy = { evaluate: () => ({ outcome: 'allow' }) }

/** Starts and ends with the tests of a file. By default everything is allowed. */
export function useDesk(): Desk {
  let service: EffectServer | undefined
  let catalog: ActionParts['catalog'] | undefined
  let policy = ALLOW
  let handler: ActionHandler = async () => ({})
  const validators: ProposalValidator[] = []
  beforeAll(async () => {
    service = await startEffectServer()
    catalog = createSkillCatalog([
      deskSkill(service.url),
      deskSkill(service.url, { version: '2.0.0', source: { identity: 'here', format: 'file', digest: 'a' } }),
      deskSkill(service.url, { version: '2.0.0', source: { identity: 'there', format: 'file', digest: 'b' } }),
    ])
  })
  afterEach(() => {
    policy = ALLOW
    handler = async () => ({})
    validators.length = 0
  })
  afterAll(() => service?.close())
  const started = (): EffectServer => {
    if (!service) throw new Error('the service is not started yet')
    return service
  }
  return {
    service: started,
    policy: (next) => void (policy = next),
    validators,
    handler: (next) => void (handler = next),
    parts: {
      catalog: { find: (...args) => catalog?.find(...args) },
      policy: { evaluate: (proposal) => policy.evaluate(proposal) },
      validators,
      transports: {
        http: createHttpTransport(),
        function: createFunctionTransport({ here: (dispatch) => handler(dispatch) }),
      },
      credentials: { resolve: async () => SECRET },
    },
  }
}

/** How often the desk was asked for what this run wants. */
export async function countOf(desk: Desk, stage: Stage, runId: string): Promise<number> {
  const asked = await stage.calls(runId)
  return desk.service().effects.filter(({ body }) => asked.some(({ id }) => id === body.invocationId)).length
}

/** A reaction of the desk that never comes. */
export const NEVER = { until: new Promise(() => {}) }

export const APPROVER = { type: 'role', id: 'operator' }
export const DEFAULT_POLICY = defaultPolicy()
export const servedParts = (desk: Desk) => ({ actions: desk.parts, approvalAuthorizer: createDefaultAuthorizer() })

export const bindingOf = (fields: object = {}): Record<string, unknown> => ({
  skillId: 'desk',
  skillVersion: '1.0.0',
  allowedActions: ALLOWED,
  maximumRisk: 'destructive',
  credentials: { login: { kind: 'bearer', id: 'desk-login' } },
  ...fields,
})

export const BY = { actor: { type: 'user', id: 'una' }, reason: 'as asked' }

/** One agent with the binding `desk`, and what tests do to its run. */
export interface Stage {
  api: ScopedApi
  scope: Scope
  /** A run that is in its first turn. */
  begin(fields?: Partial<Run>): Promise<Run>
  /** Lets the run propose, as the end of its turn; it is claimed again first where it stands in the queue. */
  propose(runId: string, proposal: Partial<ActionProposal> & { action: string }): Promise<Run>
  run(runId: string): Promise<Run>
  /** The newest call of a run. */
  call(runId: string): Promise<ActionCall>
  calls(runId: string): Promise<ActionCall[]>
  /** Takes back calls of lost workers, then makes the one that is next; false where there is none. */
  work(worker?: Partial<ActionWorker>): Promise<boolean>
  /** Types of the events of a run, in order. */
  events(runId: string): Promise<string[]>
}

const WORKER = { id: 'worker', leaseMs: 60_000, heartbeatMs: 20_000, abandoned: new AbortController().signal }

export async function openStage(open: OpenKernel, { authority = {}, binding = {} } = {}): Promise<Stage> {
  const api = open.api()
  const { scope } = api
  const { context } = open.kernel
  const { database } = open.store
  const manifest = { skillRequirements: [], authority: { maximumRisk: 'destructive', ...authority } }
  expect((await install(api, { manifest })).status).toBe(201)
  const put = { binding: bindingOf(binding), expectedRevision: 0, ...BY }
  const bound = await api.put('/agent-deployments/ana/skill-bindings/desk', put)
  expect([bound.status, bound.body.error]).toEqual([201, undefined])
  const listed = async (runId: string): Promise<ActionCall[]> =>
    (await listCalls(database, scope, { runId }, { limit: 100 })).items
  const readRun = (runId: string): Promise<Run> => readRecord(database, runs, scope, runId)
  return {
    api,
    scope,
    begin: async (fields = {}) =>
      database.transaction((tx) => insertRun(tx, runOf(open, { scope, status: 'running', ...fields }))),
    run: readRun,
    calls: listed,
    call: async (runId) => {
      const last = (await listed(runId)).at(-1)
      if (!last) throw new Error(`run ${runId} made no call`)
      return readRecord(database, calls, scope, last.id)
    },
    propose: async (runId, proposal) => {
      const before = await readRun(runId)
      const run = before.status === 'queued' ? moveRun(before, { to: 'running', now: context.store.now() }) : before
      const agent = await resolveDeployment(database, scope, run)
      if (!agent) throw new Error('the agent is not installed')
      const whole = { bindingId: 'desk', arguments: { text: 'hello' }, summary: 'Does it', ...proposal }
      const prepared = await prepareAction(context, run, agent, whole)
      const { result } = await makeChange(context, scope, BY_KERNEL, async (change) => {
        const turn = turnOf(open, { scope, runId, sequence: run.lastAppliedTurn + 1, status: 'completed' })
        await insertRecord(change.tx, turns, turn)
        const applied = { ...run, lastAppliedTurn: turn.sequence, pendingResults: [] }
        return saveMoved(change, run, await recordAction(change, applied, turn, prepared))
      })
      return result
    },
    work: async (worker = {}) => {
      await recoverCalls(context, scope)
      const make = await claimAction(context, { ...WORKER, scope, ...worker })
      await make?.()
      return make !== undefined
    },
    events: async (runId) => {
      const page = { order: 'asc' as const, limit: 100, details: false }
      return (await listEvents(database, scope, { runId }, page)).map(({ event }) => event.eventType)
    },
  }
}
