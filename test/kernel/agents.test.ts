import { expect, test } from 'vitest'
import { canonicalJson } from '../../src/base/canonical-json.ts'
import { sha256 } from '../../src/base/hash.ts'
import { insertCompilation } from '../../src/kernel/store/deployments.ts'
import { describeKernels, type Reply } from './api.ts'
import { BY_AGENT, BY_USER, deploymentOf, install, installVersions, manifestOf, refusal } from './registry-support.ts'

describeKernels('agents', (open) => {
  test('kernel#81 an installation registers the version and makes it run; its digest can be made again', async () => {
    const api = open().api()
    const { status, body } = await install(api, { reason: 'first' })
    expect(status).toBe(201)
    expect(body).toMatchObject({
      replayed: false,
      definition: { id: `${api.scope.kind}/${api.scope.id}/ana`, version: '1.0.0', createdAt: open().at() },
      deployment: {
        id: 'ana',
        definitionId: body.definition.id,
        activeVersion: '1.0.0',
        rolloutStatus: 'active',
        revision: 1,
        restrictions: {},
        capacity: { maxConcurrentRuns: 1 },
        idempotencyKeyHash: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      },
    })
    const read = (await api.get('/agent-deployments/ana')).body
    expect(read).toEqual({ deployment: body.deployment, definition: body.definition })
    const { digest, createdAt: _, ...content } = read.definition
    expect(digest).toBe(sha256(canonicalJson(content)))
    expect((await api.get('/agent-deployments/ana/activations')).body).toEqual([
      {
        scope: api.scope,
        id: expect.any(String),
        deploymentId: 'ana',
        definitionId: body.definition.id,
        toVersion: '1.0.0',
        deploymentRevision: 1,
        changeKind: 'activated',
        reason: 'first',
        ...BY_USER,
        createdAt: open().at(),
      },
    ])
  })

  test('kernel#81 the same again is a replay, with its key or with another; other content is refused', async () => {
    const api = open().api()
    const first = await install(api, {}, 'k')
    const again = await install(api, {}, 'k')
    expect([again.status, again.headers.get('idempotent-replay')]).toEqual([200, 'true'])
    expect(again.body).toEqual({ ...first.body, replayed: true })
    const otherKey = await install(api)
    expect([otherKey.status, otherKey.headers.get('idempotent-replay')]).toEqual([200, null])
    expect(otherKey.body).toEqual({ ...first.body, replayed: true })
    expect((await install(api, { manifest: { version: '2.0.0' } }, 'k')).status).toBe(409)
    expect(refusal(await install(api, { manifest: { purpose: 'Counts clouds' } }))).toEqual([
      409,
      expect.stringContaining('use a new version'),
    ])
    expect(refusal(await install(api, { deployment: { placement: { region: 'eu' } } }))[0]).toBe(409)
    expect(refusal(await install(api, { deployment: { environment: 'test' } }))[0]).toBe(409)
    expect(refusal(await install(api, { manifest: { id: 'bo' } }))[0]).toBe(409)
    expect((await api.get('/agent-deployments/ana/activations')).body).toHaveLength(1)
  })

  test('an installation brings a deployment to its new version and configuration, and leaves it paused', async () => {
    const api = open().api()
    const { deployment } = (await install(api)).body
    const paused = { ...deployment, rolloutStatus: 'paused', health: { status: 'fine' } }
    await api.put('/agent-deployments/ana', { ...BY_USER, deployment: paused, expectedRevision: 1, reason: 'rest' })
    const { status, body } = await install(api, {
      manifest: { version: '2.0.0' },
      deployment: { displayName: 'Second' },
    })
    expect(status).toBe(201)
    expect(body).toMatchObject({
      replayed: false,
      definition: { version: '2.0.0' },
      deployment: {
        revision: 3,
        activeVersion: '2.0.0',
        previousVersion: '1.0.0',
        displayName: 'Second',
        rolloutStatus: 'paused',
        health: { status: 'fine' },
      },
    })
    const configured = await install(api, { manifest: { version: '2.0.0' }, deployment: { rolloutStatus: 'active' } })
    expect([configured.status, configured.body.replayed]).toEqual([200, false])
    expect(configured.body.deployment).not.toHaveProperty('displayName')
    const kinds = (await api.get('/agent-deployments/ana/activations')).body.map(
      ({ changeKind }: { changeKind: string }) => changeKind,
    )
    expect(kinds).toEqual(['configuration-updated', 'activated', 'configuration-updated', 'activated'])
    expect((await install(api, { deployment: { rolloutStatus: 'pending' } })).status).toBe(409)
  })

  test('the endpoints of an installation stand in its deployment until another names others', async () => {
    const api = open().api()
    const endpointIds = ['mail-gateway', 'desk']
    const { body } = await install(api, { endpointIds })
    expect(body.deployment).toMatchObject({ endpointIds, revision: 1 })
    expect((await install(api, { endpointIds })).body).toMatchObject({ replayed: true, deployment: { revision: 1 } })
    expect((await api.get('/agent-deployments/ana')).body.deployment).toMatchObject({ endpointIds })

    const put = (deployment: object): Promise<Reply> =>
      api.put('/agent-deployments/ana', { ...BY_USER, deployment, expectedRevision: 1, reason: 'named' })
    const frozen = await put({ ...body.deployment, endpointIds: ['other'] })
    expect(refusal(frozen)).toEqual([400, 'deployment.endpointIds cannot be changed by replacing the deployment'])
    const { endpointIds: _, ...without } = body.deployment
    const named = await put({ ...without, displayName: 'Ana' })
    expect([named.status, named.body.deployment]).toMatchObject([200, { endpointIds, displayName: 'Ana', revision: 2 }])

    expect((await install(api, { endpointIds: ['desk'] })).body.deployment).toMatchObject({ endpointIds: ['desk'] })
    expect((await install(api)).body.deployment).not.toHaveProperty('endpointIds')
    expect(refusal(await install(api, { endpointIds: [''] }))[0]).toBe(400)
  })

  test('kernel#22 an installation needs a key; one that was refused leaves nothing, and its key is free', async () => {
    const api = open().api()
    const body = { ...BY_USER, manifest: manifestOf(), deployment: deploymentOf() }
    expect((await api.post('/agent-installations', body)).status).toBe(400)
    const wide = await install(api, { deployment: { capacity: { maxConcurrentRuns: 3 } } }, 'k')
    expect(wide.status).toBe(400)
    expect((await api.get('/agent-deployments')).body).toEqual({ items: [] })
    expect((await install(api, { manifest: { purpose: 'Other' } }, 'k')).status).toBe(201)
  })

  test('a manifest must not contradict itself, hold secrets, nor have too long an id', async () => {
    const api = open().api()
    const criterion = { id: 'c', description: 'Counts right' }
    for (const manifest of [
      { authority: { maximumRisk: 'read', allowedSkillIds: ['shell'] } },
      { evaluations: [criterion, criterion] },
      { domainContext: { deep: { apiKey: 'x' } } },
      { id: 'x'.repeat(256) },
      { version: '-1' },
      { digest: 'd' },
    ]) {
      expect([manifest, (await install(api, { manifest })).status]).toEqual([manifest, 400])
    }
  })

  test('kernel#82 restrictions and capacity only narrow the definition', async () => {
    const api = open().api()
    const authority = {
      maximumRisk: 'write',
      maxConcurrentRuns: 2,
      allowedSkillIds: ['mail'],
      budgetCeilings: { maxTurns: 5 },
    }
    const { deployment } = (await install(api, { manifest: { authority } })).body
    const put = (fields: object, expectedRevision = 1): Promise<{ status: number; body: unknown }> =>
      api.put('/agent-deployments/ana', {
        ...BY_USER,
        deployment: { ...deployment, ...fields },
        expectedRevision,
        reason: 'r',
      })
    for (const fields of [
      { restrictions: { maximumRisk: 'external' } },
      { restrictions: { allowedSkillIds: ['web'] } },
      { restrictions: { maxConcurrentRuns: 3 } },
      { restrictions: { budgetCeilings: { maxTurns: 6 } } },
      { capacity: { maxConcurrentRuns: 3 } },
    ]) {
      expect([fields, (await put(fields)).status]).toEqual([fields, 400])
    }
    const narrow = { maximumRisk: 'read', allowedSkillIds: [], maxConcurrentRuns: 1, budgetCeilings: { maxActions: 9 } }
    const { status, body } = await put({ restrictions: narrow })
    expect([status, body]).toMatchObject([200, { deployment: { revision: 2, restrictions: narrow } }])
  })

  test('kernel#82 a PUT keeps what is frozen, replaces the rest, and tells who did it', async () => {
    const api = open().api()
    await installVersions(api, ['1.0.0', '2.0.0'])
    const { deployment } = (await install(api, { manifest: { version: '2.0.0' }, deployment: { displayName: 'Old' } }))
      .body
    expect(deployment.revision).toBe(3)
    const put = (fields: object, more: object = {}): ReturnType<typeof api.put> =>
      api.put('/agent-deployments/ana', {
        ...BY_USER,
        deployment: { ...deployment, ...fields },
        expectedRevision: 3,
        reason: 'r',
        ...more,
      })
    for (const fields of [
      { id: 'bo' },
      { definitionId: 'other' },
      { activeVersion: '1.0.0' },
      { previousVersion: '0.1.0' },
      { createdAt: '2020-01-01T00:00:00.000Z' },
      { revision: 2 },
      { activation: { changeSetId: 'c' } },
      { idempotencyKeyHash: 'sha256:x' },
      { unknown: 1 },
      { scope: { kind: 'test', id: 'other' } },
      {},
    ]) {
      expect([fields, (await put(fields)).status]).toEqual([fields, 400])
    }
    expect((await put({ environment: 'test' }, { reason: undefined })).status).toBe(400)
    expect((await put({ environment: 'test' }, BY_AGENT)).status).toBe(403)
    expect(refusal(await put({ environment: 'test' }, { expectedRevision: 1 }))).toEqual([
      409,
      'revision conflict: expected 1, current 3',
    ])
    const { displayName: _, createdAt: _c, ...bare } = deployment
    const changed = await api.put(
      '/agent-deployments/ana',
      { ...BY_USER, deployment: { ...bare, environment: 'test' }, expectedRevision: 3, reason: 'move' },
      'k',
    )
    expect(changed.status).toBe(200)
    expect(changed.body).toMatchObject({
      deployment: { revision: 4, environment: 'test', createdAt: deployment.createdAt, previousVersion: '1.0.0' },
      audit: {
        changeKind: 'configuration-updated',
        fromVersion: '2.0.0',
        toVersion: '2.0.0',
        reason: 'move',
        ...BY_USER,
      },
    })
    expect(changed.body.deployment).not.toHaveProperty('displayName')
    const replay = await api.put(
      '/agent-deployments/ana',
      { ...BY_USER, deployment: { ...bare, environment: 'test' }, expectedRevision: 3, reason: 'move' },
      'k',
    )
    expect([replay.status, replay.headers.get('idempotent-replay'), replay.body]).toEqual([200, 'true', changed.body])
  })

  test('kernel#82 the state moves as it may; retired is the end of every write', async () => {
    const api = open().api()
    let { deployment } = (await install(api, { deployment: { rolloutStatus: 'pending' } })).body
    const move = async (rolloutStatus: string): Promise<number> => {
      const { status, body } = await api.put('/agent-deployments/ana', {
        ...BY_USER,
        deployment: { ...deployment, rolloutStatus },
        expectedRevision: deployment.revision,
        reason: 'r',
      })
      if (status === 200) deployment = body.deployment
      return status
    }
    const moves = ['degraded', 'active', 'degraded', 'pending', 'paused', 'pending', 'active', 'retired']
    const statuses: number[] = []
    for (const to of moves) statuses.push(await move(to))
    expect(statuses).toEqual([409, 200, 409, 409, 200, 409, 200, 200])
    const { revision } = deployment
    expect(await move('active')).toBe(409)
    expect((await install(api)).status).toBe(409)
    for (const [path, body] of Object.entries({
      activations: { version: '1.0.0' },
      rollbacks: {},
    })) {
      const refused = await api.post(`/agent-deployments/ana/${path}`, {
        ...BY_USER,
        expectedRevision: revision,
        ...body,
      })
      expect(refusal(refused)).toEqual([409, 'agent deployment ana is retired'])
    }
  })

  test('kernel#5 kernel#4 agents of another scope are not found, and scopes must agree', async () => {
    const [api, other] = [open().api(), open().api()]
    await install(api)
    const write = { ...BY_USER, expectedRevision: 1 }
    for (const reply of [
      await other.get('/agent-deployments/ana'),
      await other.get('/agent-deployments/ana/activations'),
      await other.get('/agent-deployments/ana/amendments'),
      await other.get('/agent-deployments/ana/compilations'),
      await other.put('/agent-deployments/ana', {
        ...write,
        reason: 'r',
        deployment: { ...deploymentOf(), definitionId: 'x', activeVersion: '1.0.0', rolloutStatus: 'paused' },
      }),
      await other.post('/agent-deployments/ana/activations', { ...write, version: '1.0.0' }),
      await other.post('/agent-deployments/ana/rollbacks', write),
    ]) {
      expect(refusal(reply)).toEqual([404, 'agent deployment ana was not found'])
    }
    expect((await other.get('/agent-deployments')).body).toEqual({ items: [] })
    expect((await install(api, { deployment: { scope: other.scope } })).status).toBe(400)
    expect((await install(api, { scope: other.scope })).status).toBe(400)
    const body = { ...BY_USER, manifest: manifestOf(), deployment: deploymentOf({ scope: other.scope }) }
    const inside = await open().call('POST', '/agent-installations', body, { headers: { 'Idempotency-Key': 'k' } })
    expect([inside.status, inside.body.deployment.scope]).toEqual([201, other.scope])
  })

  test('lists of deployments leave out states; all lists take a limit', async () => {
    const api = open().api()
    for (const [id, rolloutStatus] of [
      ['c', 'active'],
      ['a', 'pending'],
      ['b', 'paused'],
    ]) {
      await install(api, { deployment: { id, rolloutStatus } })
    }
    const ids = async (query: string): Promise<string[]> =>
      (await api.get(`/agent-deployments${query}`)).body.items.map(
        ({ deployment, definition }: { deployment: { id: string }; definition: { version: string } }) =>
          `${deployment.id} ${definition.version}`,
      )
    expect(await ids('')).toEqual(['a 1.0.0', 'b 1.0.0', 'c 1.0.0'])
    expect(await ids('?excludeStatuses=pending,paused')).toEqual(['c 1.0.0'])
    expect(await ids('?excludeStatuses=pending&excludeStatuses=active')).toEqual(['b 1.0.0'])
    expect(await ids('?limit=1&offset=1')).toEqual(['b 1.0.0'])
    for (const query of ['?limit=0', '?limit=501', '?offset=-1', '?excludeStatuses=gone']) {
      expect([query, (await api.get(`/agent-deployments${query}`)).status]).toEqual([query, 400])
    }
  })

  test('compilations come newest first, with the latest told apart', async () => {
    const api = open().api()
    const { definition } = (await install(api)).body
    const path = '/agent-deployments/ana/compilations'
    expect((await api.get(path)).body).toEqual({ apiVersion: 'agent-kernel/v1', items: [] })
    const { store, advance, at } = open()
    for (const id of ['c1', 'c2']) {
      advance(1)
      await store.database.transaction((tx) =>
        insertCompilation(tx, {
          scope: api.scope,
          id,
          deploymentId: 'ana',
          definitionId: definition.id,
          candidateVersion: '2.0.0',
          source: { kind: 'artifact', id: 'a', version: '1', digest: 'd' },
          status: 'failed',
          diagnostics: [{ path: 'steps', code: 'missing', message: 'no step' }],
          createdAt: at(),
        }),
      )
    }
    const { items, latest } = (await api.get(path)).body
    expect([latest.id, ...items.map(({ id }: { id: string }) => id)]).toEqual(['c2', 'c2', 'c1'])
    expect((await api.get(`${path}?offset=1`)).body).toMatchObject({ latest: { id: 'c2' }, items: [{ id: 'c1' }] })
  })
})
