import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { KernelApiError, KernelClient, type KernelClientOptions } from '../../src/client/index.ts'
import type { NewRun } from '../../src/client/kernel/kernel-types.ts'
import { openKernel, type OpenKernel } from '../kernel/api.ts'
import { createStorePlace, openStore } from '../kernel/support.ts'

const TOKEN = 'a-token-of-tests'
const ANA = { type: 'agent', id: 'ana' } as const
const BO = { type: 'agent', id: 'bo' } as const

let open: OpenKernel

beforeAll(async () => {
  open = await openKernel(await openStore(await createStorePlace('memory')), { token: TOKEN })
})
afterAll(async () => {
  await open.stop()
  await open.store.close()
})

const origin = (): string => new URL(open.url).origin

afterEach(() => void vi.useRealTimers())

/** In a scope of its own. */
const client = (options: KernelClientOptions = {}): KernelClient =>
  new KernelClient(origin(), { token: TOKEN, scope: open.scope(), random: () => 0, ...options })

const run = (fields: Partial<NewRun> = {}): NewRun => ({ owner: ANA, goal: 'Count the moons', ...fields })

async function refused(work: Promise<unknown>): Promise<KernelApiError> {
  const error: unknown = await work.catch((caught: unknown) => caught)
  if (!(error instanceof KernelApiError)) throw new Error('it was not refused by the kernel', { cause: error })
  return error
}

/** `fetch` that fails as told, call by call, and notes what was sent. */
function flaky(...failures: ('network' | number | 'ok')[]) {
  const sent: { method: string; url: string; headers: Headers }[] = []
  const go: typeof fetch = async (input, init) => {
    sent.push({
      method: init?.method ?? '',
      url: input instanceof Request ? input.url : input.toString(),
      headers: new Headers(init?.headers),
    })
    const failure = failures[sent.length - 1] ?? 'ok'
    if (failure === 'network') throw new TypeError('fetch failed')
    if (failure !== 'ok') return new Response('{"error":"not now"}', { status: failure })
    return fetch(input, init)
  }
  return { sent, fetch: go }
}

test('health, capabilities, supports', async () => {
  const kernel = client()
  expect(await kernel.health()).toMatchObject({ status: 'ok', checks: { store: { status: 'ok' } } })
  expect((await kernel.capabilities()).apiVersion).toBe('agent-kernel/v1')
  expect(await kernel.supports('objectives', '1', 'create')).toBe(true)
  expect(await kernel.supports('objectives', '2', 'create')).toBe(false)
  expect(await kernel.supports('objectives', '1', 'fly')).toBe(false)
})

test('objectives and projects', async () => {
  const kernel = client()
  const objective = await kernel.objectives.create({ owner: ANA, title: 'Moons', goal: 'Know them', status: 'active' })
  const { expectedRevision, ...content } = { expectedRevision: 1, title: 'All moons', goal: 'Know them' }
  const replaced = await kernel.objectives.replace(objective.id, { expectedRevision, ...content })
  expect(replaced).toMatchObject({ title: 'All moons', revision: 2, status: 'active' })
  await kernel.runs.create(run({ objectiveId: objective.id }))
  expect((await kernel.objectives.get(objective.id)).runs).toHaveLength(1)
  expect(
    (await kernel.objectives.list({ status: ['active', 'paused'], ownerType: 'agent', ownerId: 'ana' })).items,
  ).toEqual([replaced])
  const project = await kernel.projects.create({
    title: 'Sky',
    purpose: 'See',
    owner: ANA,
    objectiveRefs: [objective.id],
  })
  expect(await kernel.projects.patch(project.id, { expectedRevision: 1, status: 'active' })).toMatchObject({
    status: 'active',
  })
  expect((await kernel.projects.list({ objectiveId: objective.id })).items).toHaveLength(1)
  expect((await kernel.projects.get(project.id)).title).toBe('Sky')
})

test('runs: create, command, admission, audit, turns, calls, approvals', async () => {
  const kernel = client()
  const created = await kernel.runs.create(run(), { idempotencyKey: 'once' })
  expect(created.event).toMatchObject({ eventType: 'run.created' })
  const again = await kernel.runs.create(run(), { idempotencyKey: 'once' })
  expect(again).toEqual({ run: created.run })
  const { id } = created.run
  const paused = await kernel.runs.command(id, { expectedRevision: 1, kind: 'pause' })
  expect(paused.run).toMatchObject({ status: 'paused', pauseReason: 'command' })
  expect(await kernel.runs.get(id)).toEqual(paused.run)
  expect(await kernel.runs.admission({ runId: id })).toMatchObject({ blocks: [{ runId: id, reason: 'paused' }] })
  expect(await kernel.runs.audit(id)).toMatchObject({ run: { id } })
  expect(await kernel.turns.list({ runId: id })).toEqual({ items: [] })
  expect(await kernel.actionCalls.list({ runId: id, status: ['ready', 'running'] })).toEqual({ items: [] })
  expect(await kernel.approvals.list({ status: ['pending'] })).toEqual({ items: [] })
  for (const absent of [kernel.turns.get('x'), kernel.actionCalls.get('x'), kernel.approvals.get('x')]) {
    expect((await refused(absent)).isNotFound()).toBe(true)
  }
})

test('requests: ask, clarify, accept, complete', async () => {
  const kernel = client()
  const source = await kernel.runs.create(run())
  const asked = await kernel.requests.create({
    kind: 'request',
    requester: ANA,
    recipient: BO,
    sourceRunId: source.run.id,
    goal: 'Count them',
  })
  const { id } = asked.request
  await kernel.requests.respond(id, {
    expectedRevision: 1,
    decision: 'request_clarification',
    principal: BO,
    message: 'Which?',
  })
  await kernel.requests.respond(id, {
    expectedRevision: 2,
    decision: 'provide_clarification',
    principal: ANA,
    message: 'Of Mars',
  })
  const accepted = await kernel.requests.respond(id, { expectedRevision: 3, decision: 'accept', principal: BO })
  expect(accepted.childRun).toMatchObject({ parentRunId: source.run.id })
  const completion = { expectedRevision: 4, principal: BO, summary: 'Two' }
  const done = await kernel.requests.complete(id, completion, { idempotencyKey: 'done' })
  expect(done.request.status).toBe('completed')
  const vote = { expectedRevision: 5, principal: ANA, approve: true, summary: 'Good' }
  const late = await refused(kernel.requests.review(id, vote, { idempotencyKey: 'vote' }))
  expect(late.isConflict()).toBe(true)
  expect(await kernel.requests.get(id)).toEqual(done.request)
  expect((await kernel.requests.list({ recipientType: 'agent', recipientId: 'bo' })).items).toHaveLength(1)
})

test('agents and teams', async () => {
  const kernel = client()
  const by = { actorType: 'user', actorId: 'pia' }
  const manifest = {
    id: 'ana',
    version: '1',
    displayName: 'Ana',
    purpose: 'Look',
    systemPrompt: 'Look up.',
    authority: { maximumRisk: 'read' },
  } as const
  const installed = await kernel.agents.install(
    { ...by, manifest, deployment: { id: 'ana', environment: 'test' } },
    { idempotencyKey: 'install' },
  )
  expect(installed).toMatchObject({ deployment: { id: 'ana', rolloutStatus: 'active' }, replayed: false })
  const second = { ...by, manifest: { ...manifest, version: '2' }, deployment: { id: 'ana', environment: 'test' } }
  await kernel.agents.install(second, { idempotencyKey: 'second' })
  const { deployment, definition } = await kernel.agents.get('ana')
  expect(definition.version).toBe('2')
  const back = await kernel.agents.rollBack('ana', { ...by, expectedRevision: deployment.revision })
  expect(back.deployment.activeVersion).toBe('1')
  const moved = await kernel.agents.activate('ana', {
    ...by,
    version: '2',
    expectedRevision: back.deployment.revision,
  })
  const replaced = await kernel.agents.replace('ana', {
    ...by,
    deployment: { ...moved.deployment, displayName: 'Ana B' },
    expectedRevision: moved.deployment.revision,
    reason: 'a name',
  })
  expect(replaced.deployment.displayName).toBe('Ana B')
  expect((await kernel.agents.activations('ana')).items[0]?.changeKind).toBe('configuration-updated')
  expect(await kernel.agents.compilations('ana')).toEqual({ apiVersion: 'agent-kernel/v1', items: [] })
  expect(await kernel.agents.amendments('ana')).toEqual({ items: [] })
  expect((await kernel.agents.list({ excludeStatuses: ['retired'] })).items).toHaveLength(1)

  const team = await kernel.teams.register({
    id: 'crew',
    version: '1',
    displayName: 'Crew',
    purpose: 'Sail',
    roles: [{ id: 'lead', displayName: 'Lead', purpose: 'Lead' }],
    coordination: { mode: 'peer' },
    delegation: {
      maximumDepth: 1,
      maximumConcurrent: 1,
      allowPeerDelegation: false,
      requireAcceptance: false,
      requireCompletionReview: false,
      escalateOnDisagreement: false,
    },
    approvals: { maximumRisk: 'write' },
  })
  expect(await kernel.teams.definitions(team.id)).toEqual([team])
  expect(await kernel.teams.definition(team.id, '1')).toEqual(team)
  const roster = [{ id: 'm1', roleId: 'lead', agentDeploymentId: 'ana' }]
  await kernel.teams.deploy({ ...by, deployment: { id: 'crew', definitionId: team.id, activeVersion: '1', roster } })
  expect((await kernel.teams.get('crew')).deployment).toMatchObject({ status: 'draft', roster })
  expect((await refused(kernel.teams.amendment('crew', 'none'))).status).toBe(404)
})

test('a list is walked page by page', async () => {
  const kernel = client()
  for (let i = 0; i < 7; i++) await kernel.runs.create(run({ goal: `Count ${i}` }))
  const first = await kernel.runs.list({ limit: 3 })
  expect(first.items).toHaveLength(3)
  expect(first.nextCursor).toBeDefined()
  const goals: string[] = []
  for await (const { goal } of kernel.paginate((at) => kernel.runs.list({ limit: 3, ...at }))) goals.push(goal)
  expect(goals).toEqual([0, 1, 2, 3, 4, 5, 6].map((i) => `Count ${i}`))
})

test('activity is followed by its cursor', async () => {
  const kernel = client()
  const before = await kernel.activity({ order: 'asc' })
  const { run: made } = await kernel.runs.create(run())
  const page = await kernel.activity({
    order: 'asc',
    includeDetails: true,
    ...(before.nextCursor !== undefined && { cursor: before.nextCursor }),
  })
  expect(page.items).toMatchObject([{ eventType: 'run.created', runId: made.id, payload: { status: 'queued' } }])
})

test('what happened so far is walked to its end, which has a cursor too', async () => {
  const kernel = client()
  for (let i = 0; i < 5; i++) await kernel.runs.create(run())
  const types: string[] = []
  for await (const { eventType } of kernel.paginate((at) => kernel.activity({ order: 'asc', limit: 2, ...at }))) {
    types.push(eventType)
  }
  expect(types).toEqual(Array.from({ length: 5 }, () => 'run.created'))
})

test('a refusal tells status, text and request id', async () => {
  const kernel = client()
  const { run: made } = await kernel.runs.create(run())
  const error = await refused(kernel.runs.command(made.id, { expectedRevision: 7, kind: 'pause' }))
  expect(error).toMatchObject({
    status: 409,
    message: 'revision conflict: expected 7, current 1',
    name: 'KernelApiError',
  })
  expect(error.requestId).toMatch(/^req_/)
  expect(await refused(client({ token: 'wrong' }).health())).toMatchObject({ status: 401, message: 'unauthorized' })
  expect(await refused(kernel.runs.get('..'))).toMatchObject({ status: 0 })
})

test('GETs and writes with a key are tried again when the network fails or the server is not up', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  /** As it ends once all waits are over. */
  const settled = async <T>(work: Promise<T>): Promise<T> => {
    work.catch(() => undefined)
    for (let i = 0; i < 3; i++) await vi.advanceTimersByTimeAsync(10_000)
    return work
  }
  const reads = flaky('network', 503)
  expect((await settled(client(reads).health())).status).toBe('ok')
  expect(reads.sent).toHaveLength(3)
  const keyed = flaky(503)
  await settled(client(keyed).runs.create(run(), { idempotencyKey: 'k' }))
  expect(keyed.sent.map(({ headers }) => headers.get('idempotency-key'))).toEqual(['k', 'k'])
  const worded = flaky(503)
  await settled(client(worded).runs.create(run(), { idempotencyKey: 'schlüssel 🔑' }))
  expect(worded.sent).toHaveLength(2)
  const unkeyed = flaky('network')
  expect(await refused(client(unkeyed).runs.create(run()))).toMatchObject({ status: 0 })
  expect(unkeyed.sent).toHaveLength(1)
  const down = flaky(503, 503, 503, 503)
  expect(await refused(settled(client(down).runs.list()))).toMatchObject({ status: 503, message: 'not now' })
  expect(down.sent).toHaveLength(3)
  const broken = flaky(500)
  expect((await refused(client(broken).runs.list())).status).toBe(500)
  expect(broken.sent).toHaveLength(1)
})

test('two tries more outlast a server that is away for a second, however the waits are drawn', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const away = flaky('network', 'network')
  const work = client(away).health()
  await vi.advanceTimersByTimeAsync(1000)
  expect(away.sent).toHaveLength(2)
  await vi.advanceTimersByTimeAsync(1000)
  expect((await work).status).toBe('ok')
})

test('a call that is given up throws its reason, also between two tries', async () => {
  const given = new AbortController()
  const failing = flaky('network', 'network', 'network')
  const work = client({ ...failing, random: () => 1 }).runs.list({}, { signal: given.signal })
  given.abort(new Error('enough'))
  await expect(work).rejects.toThrow('enough')
})

test('no answer in time is status 0', async () => {
  const silent = createServer(() => {})
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const { port } = silent.address() as AddressInfo
  const kernel = new KernelClient(`http://127.0.0.1:${port}`, { timeoutMs: 50 })
  expect(await refused(kernel.health())).toMatchObject({
    status: 0,
    message: expect.stringContaining('did not answer'),
  })
  silent.closeAllConnections()
  silent.close()
})

test('a URL without path gets the API root, one with a path is it; protocol headers are not the caller’s', async () => {
  const requestHeaders: Record<string, string> = {
    'content-type': 'text/plain',
    'Idempotency-KEY': 'x',
    'X-Request-ID': 'mine',
  }
  for (const base of [origin(), `${origin()}/`, open.url, `${open.url}//`]) {
    const seen = flaky()
    const kernel = new KernelClient(base, { token: TOKEN, requestHeaders, ...seen })
    requestHeaders['X-Late'] = 'yes'
    await kernel.objectives.create({ owner: ANA, title: 'Moons', goal: 'Know' })
    expect(seen.sent[0]?.url).toBe(`${open.url}/objectives`)
    const { headers } = seen.sent[0] ?? { headers: new Headers() }
    expect(headers.get('content-type')).toBe('application/json')
    expect(headers.get('idempotency-key')).toBeNull()
    expect(headers.get('x-request-id')).toBe('mine')
    expect(headers.get('x-late')).toBeNull()
    delete requestHeaders['X-Late']
  }
})
