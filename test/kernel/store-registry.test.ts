import { expect, test } from 'vitest'
import {
  agentManifest,
  teamManifest,
  type AgentDefinition,
  type TeamDefinition,
} from '../../src/kernel/model/definition.ts'
import type { ActivationRecord, AgentDeployment, Amendment, TeamDeployment } from '../../src/kernel/model/deployment.ts'
import type { Scope } from '../../src/kernel/model/fields.ts'
import { createProject, type Project } from '../../src/kernel/model/project.ts'
import { createRequest, type AgentRequest } from '../../src/kernel/model/request.ts'
import { insertActivation, listActivations } from '../../src/kernel/store/activations.ts'
import { findDefinition, insertDefinition, listDefinitions } from '../../src/kernel/store/definitions.ts'
import {
  agentDeployments,
  amendments,
  insertCompilation,
  listAmendments,
  listCompilations,
  listDeployed,
  teamDeployments,
} from '../../src/kernel/store/deployments.ts'
import { insertProject, listProjects, projects, saveProject } from '../../src/kernel/store/projects.ts'
import { insertRecord, readRecord, saveRecord } from '../../src/kernel/store/records.ts'
import { findRequestOfChild, listRequests, requests } from '../../src/kernel/store/requests.ts'
import { describeStores, type OpenStore } from './support.ts'

const recorded = (
  open: OpenStore,
  scope: Scope,
): { scope: Scope; id: string; revision: number; createdAt: string; updatedAt: string } => ({
  scope,
  id: open.newId(),
  revision: 1,
  createdAt: open.at(),
  updatedAt: open.at(),
})

function projectOf(open: OpenStore, scope: Scope, fields: object = {}): Project {
  const {
    actor: _a,
    idempotencyKey: _k,
    id: _i,
    scope: _s,
    ...content
  } = createProject.parse({
    title: 'Sky',
    purpose: 'See',
    owner: { type: 'agent', id: 'ana' },
    objectiveRefs: ['o1', 'o2'],
    ...fields,
  })
  return { ...recorded(open, scope), ...content }
}

function requestOf(open: OpenStore, scope: Scope, fields: Partial<AgentRequest> = {}): AgentRequest {
  const {
    actor: _a,
    idempotencyKey: _k,
    id: _i,
    scope: _s,
    ...content
  } = createRequest.parse({
    kind: 'request',
    requester: { type: 'agent', id: 'ana' },
    recipient: { type: 'agent', id: 'bo' },
    sourceRunId: 'r1',
    goal: 'Help',
  })
  const rest = { candidates: [], bids: [], artifacts: [], completionReviews: [], reviewDisagreement: false } as const
  return {
    ...recorded(open, scope),
    ...content,
    status: 'pending',
    ...rest,
    artifactRequirements: [],
    ...fields,
  } as AgentRequest
}

const agentOf = (open: OpenStore, scope: Scope, version: string): AgentDefinition => ({
  ...agentManifest.parse({
    id: `${scope.kind}/x/ana`,
    version,
    displayName: 'Ana',
    purpose: 'Look',
    systemPrompt: 'Look up.',
    authority: { maximumRisk: 'read' },
  }),
  scope,
  digest: version.padEnd(64, '0'),
  createdAt: open.at(),
})

describeStores('the store of projects, requests and deployments', (open) => {
  const write = <T>(fn: Parameters<ReturnType<typeof open>['store']['database']['transaction']>[0]): Promise<T> =>
    open().store.database.transaction(fn) as Promise<T>

  test('projects: the last changed first, by owner, state and objective', async () => {
    const { store, scope, advance } = open()
    const mine = scope()
    const first = projectOf(open(), mine)
    advance(1)
    const second = projectOf(open(), mine, {
      objectiveRefs: ['o2'],
      status: 'active',
      owner: { type: 'team', id: 't' },
    })
    await write(async (tx) => {
      await insertProject(tx, first)
      await insertProject(tx, second)
    })
    const ids = async (filter: Parameters<typeof listProjects>[2]): Promise<string[]> =>
      (await listProjects(store.database, mine, filter, { limit: 10, now: store.now() })).items.map(({ id }) => id)
    expect(await ids({})).toEqual([second.id, first.id])
    expect(await ids({ objectiveId: 'o1' })).toEqual([first.id])
    expect(await ids({ status: ['active'] })).toEqual([second.id])
    expect(await ids({ owner: { type: 'team', id: 't' } })).toEqual([second.id])
    advance(1)
    await write((tx) => saveProject(tx, { ...first, objectiveRefs: ['o3'] }, store.now()))
    expect(await ids({})).toEqual([first.id, second.id])
    expect(await ids({ objectiveId: 'o1' })).toEqual([])
    expect(await ids({ objectiveId: 'o3' })).toEqual([first.id])
    expect(await readRecord(store.database, projects, mine, first.id)).toMatchObject({ revision: 2 })
    await expect(write((tx) => insertProject(tx, first))).rejects.toMatchObject({ code: 'conflict' })
  })

  test('requests: the newest first, by each filter, and by the run that works for one', async () => {
    const { store, scope, advance } = open()
    const mine = scope()
    const first = requestOf(open(), mine)
    advance(1)
    const second = requestOf(open(), mine, {
      kind: 'handoff',
      sourceRunId: 'r2',
      recipient: { type: 'team', id: 'bo' },
      requester: { type: 'agent', id: 'cy' },
    })
    await write(async (tx) => {
      await insertRecord(tx, requests, first)
      await insertRecord(tx, requests, second)
      await saveRecord(tx, requests, { ...second, status: 'accepted', childRunId: 'c1' }, store.now())
    })
    const ids = async (filter: Parameters<typeof listRequests>[2]): Promise<string[]> =>
      (await listRequests(store.database, mine, filter, { limit: 10 })).items.map(({ id }) => id)
    expect(await ids({})).toEqual([second.id, first.id])
    for (const filter of [
      { sourceRunId: 'r2' },
      { kind: ['handoff'] },
      { status: ['accepted'] },
      { recipient: { type: 'team', id: 'bo' } },
      { requester: { type: 'agent', id: 'cy' } },
    ] satisfies Parameters<typeof listRequests>[2][]) {
      expect([filter, ...(await ids(filter))]).toEqual([filter, second.id])
    }
    expect(await findRequestOfChild(store.database, mine, 'c1')).toMatchObject({ id: second.id, revision: 2 })
    expect(await findRequestOfChild(store.database, mine, 'c2')).toBeUndefined()
  })

  test('kernel#81 a definition version is written once, whoever comes again', async () => {
    const { store, scope, advance } = open()
    const mine = scope()
    const definition = agentOf(open(), mine, '1.0.0')
    const insert = (one: AgentDefinition): Promise<boolean> => write((tx) => insertDefinition(tx, 'agent', one))
    expect([await insert(definition), await insert({ ...definition, digest: 'x' })]).toEqual([true, false])
    advance(1)
    await insert(agentOf(open(), mine, '0.9.0'))
    expect(await findDefinition(store.database, 'agent', mine, definition.id, '1.0.0')).toEqual(definition)
    expect(await findDefinition(store.database, 'team', mine, definition.id, '1.0.0')).toBeUndefined()
    expect(await findDefinition(store.database, 'agent', scope(), definition.id, '1.0.0')).toBeUndefined()
    const all = await listDefinitions(store.database, 'agent', mine, definition.id)
    expect(all.map(({ version }) => version)).toEqual(['0.9.0', '1.0.0'])
  })

  test('deployments come with the definition they run; states can be left out', async () => {
    const { store, scope } = open()
    const mine = scope()
    const definitions = ['1.0.0', '2.0.0'].map((version) => agentOf(open(), mine, version))
    const deployment = (
      id: string,
      activeVersion: string,
      rolloutStatus: AgentDeployment['rolloutStatus'],
    ): AgentDeployment => ({
      ...recorded(open(), mine),
      id,
      definitionId: definitions[0]?.id ?? '',
      activeVersion,
      rolloutStatus,
      environment: 'default',
      placement: {},
      skillBindingIds: [],
      credentials: {},
      restrictions: {},
      capacity: { maxConcurrentRuns: 1 },
      health: {},
    })
    const made = [deployment('b', '2.0.0', 'active'), deployment('a', '1.0.0', 'retired')]
    await write(async (tx) => {
      for (const definition of definitions) await insertDefinition(tx, 'agent', definition)
      for (const one of made) await insertRecord(tx, agentDeployments, one)
    })
    const all = await listDeployed(store.database, 'agent', mine, {})
    expect(all).toEqual([
      { deployment: made[1], definition: definitions[0] },
      { deployment: made[0], definition: definitions[1] },
    ])
    expect(await listDeployed(store.database, 'agent', mine, { excludeStatuses: ['retired'] })).toEqual(all.slice(1))
    expect(await listDeployed(store.database, 'agent', mine, { offset: 1, limit: 1 })).toEqual(all.slice(1))
    expect(await listDeployed(store.database, 'team', mine, {})).toEqual([])
  })

  test('a team may bear the id of an agent', async () => {
    const { store, scope, at } = open()
    const mine = scope()
    const definition: TeamDefinition = {
      ...teamManifest.parse({
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
      }),
      scope: mine,
      digest: 'd',
      createdAt: at(),
    }
    const deployment: TeamDeployment = {
      ...recorded(open(), mine),
      definitionId: 'crew',
      activeVersion: '1',
      roster: [{ id: 'm1', roleId: 'lead', agentDeploymentId: 'a' }],
      restrictions: {},
      status: 'draft',
    }
    await write(async (tx) => {
      await insertDefinition(tx, 'team', definition)
      await insertRecord(tx, teamDeployments, deployment)
    })
    expect(await listDeployed(store.database, 'team', mine, {})).toEqual([{ deployment, definition }])
  })

  test('kernel#83 activations, amendments and compilations come newest first, each of its deployment', async () => {
    const { store, scope, newId, at, advance } = open()
    const mine = scope()
    const activation = (deploymentRevision: number, toVersion: string): ActivationRecord => ({
      scope: mine,
      id: newId(),
      deploymentId: 'd1',
      definitionId: 'x',
      toVersion,
      deploymentRevision,
      changeKind: 'activated',
      actorType: 'user',
      actorId: 'u',
      createdAt: at(),
    })
    const amendment = (): Amendment => ({
      ...recorded(open(), mine),
      deploymentId: 'd1',
      definitionId: 'x',
      baseVersion: '1',
      baseDigest: 'b',
      candidate: agentManifest.parse({
        id: 'x',
        version: '2',
        displayName: 'X',
        purpose: 'p',
        systemPrompt: 's',
        authority: { maximumRisk: 'read' },
      }),
      changes: [],
      riskWidening: false,
      proposerType: 'user',
      proposerId: 'u',
      rationale: 'r',
      evidenceRefs: [],
      status: 'ready',
      evaluations: [],
    })
    const compilation = (id: string): Parameters<typeof insertCompilation>[1] => ({
      scope: mine,
      id,
      deploymentId: 'd1',
      definitionId: 'x',
      candidateVersion: '2',
      source: { kind: 'artifact', id: 'a', version: '1', digest: 'd' },
      status: 'clean',
      diagnostics: [],
      createdAt: at(),
    })
    const made: Amendment[] = []
    for (const n of [1, 2, 3]) {
      advance(1)
      made.push(amendment())
      await write(async (tx) => {
        await insertActivation(tx, 'agent', activation(n, `${n}.0.0`), n === 1 ? null : n - 1)
        await insertRecord(tx, amendments('agent'), made.at(-1) ?? amendment())
        await insertCompilation(tx, compilation(`c${n}`))
      })
    }
    const log = (await listActivations(store.database, 'agent', mine, 'd1')).items
    expect(log.map(({ toVersion }) => toVersion)).toEqual(['3.0.0', '2.0.0', '1.0.0'])
    const middle = { items: [log[1]], next: [2] }
    expect(await listActivations(store.database, 'agent', mine, 'd1', { offset: 1, limit: 1 })).toEqual(middle)
    expect(await listActivations(store.database, 'agent', mine, 'd1', { after: [3], limit: 1 })).toEqual(middle)
    expect(await listActivations(store.database, 'team', mine, 'd1')).toEqual({ items: [] })
    expect(await listAmendments(store.database, 'agent', mine, 'd1')).toEqual(made.toReversed())
    expect(await listAmendments(store.database, 'team', mine, 'd1')).toEqual([])
    expect((await listCompilations(store.database, mine, 'd1')).map(({ id }) => id)).toEqual(['c3', 'c2', 'c1'])
    expect(await listCompilations(store.database, mine, 'd2')).toEqual([])
  })
})
