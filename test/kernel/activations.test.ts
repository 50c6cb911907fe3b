import { expect, test } from 'vitest'
import { describeKernels } from './api.ts'
import { BY_AGENT, BY_USER, install, installVersions } from './registry-support.ts'

describeKernels('activations', (open) => {
  test('kernel#83 activations and rollbacks walk the stack of versions', async () => {
    const api = open().api()
    let revision = await installVersions(api, ['1.0.0', '2.0.0', '3.0.0'])
    const post = async (path: string, body: object): Promise<[number, string]> => {
      const { status, body: answer } = await api.post(`/agent-deployments/ana/${path}`, {
        ...BY_USER,
        expectedRevision: revision,
        ...body,
      })
      if (status === 200) revision = answer.deployment.revision
      return [status, status === 200 ? answer.deployment.activeVersion : answer.error]
    }
    expect(await post('rollbacks', {})).toEqual([200, '2.0.0'])
    expect(await post('rollbacks', {})).toEqual([200, '1.0.0'])
    expect((await post('rollbacks', {}))[0]).toBe(409)
    expect((await post('rollbacks', { toVersion: '1.0.0' }))[0]).toBe(409)
    expect((await post('rollbacks', { toVersion: '9.0.0' }))[0]).toBe(409)
    expect(await post('rollbacks', { toVersion: '3.0.0' })).toEqual([200, '3.0.0'])
    expect((await post('rollbacks', {}))[0]).toBe(409)
    expect((await post('activations', { version: '3.0.0' }))[0]).toBe(409)
    expect((await post('activations', { version: '9.0.0' }))[0]).toBe(404)
    expect((await post('activations', { version: '9.0.0', ...BY_AGENT, expectedRevision: 99 }))[0]).toBe(404)
    expect((await post('activations', { version: '1.0.0', ...BY_AGENT }))[0]).toBe(403)
    expect((await post('rollbacks', BY_AGENT))[0]).toBe(403)
    expect(await post('activations', { version: '2.0.0' })).toEqual([200, '2.0.0'])
    expect(await post('activations', { version: '1.0.0' })).toEqual([200, '1.0.0'])
    expect(await post('rollbacks', { toVersion: '3.0.0' })).toEqual([200, '3.0.0'])
    expect((await post('rollbacks', { expectedRevision: 1 }))[0]).toBe(409)
    const log = (await api.get('/agent-deployments/ana/activations')).body
    expect(log[0]).toMatchObject({ changeKind: 'rolled-back', fromVersion: '1.0.0', toVersion: '3.0.0' })
    expect(log).toHaveLength(revision)
    expect((await api.get('/agent-deployments/ana')).body.deployment).toMatchObject({
      activeVersion: '3.0.0',
      previousVersion: '1.0.0',
    })
  })

  test('a lost answer of an activation comes again as it was, with the deployment as it is now', async () => {
    const api = open().api()
    await installVersions(api, ['1.0.0', '2.0.0'])
    const body = { ...BY_USER, version: '1.0.0', expectedRevision: 2 }
    const first = await api.post('/agent-deployments/ana/activations', body, 'k')
    await api.post('/agent-deployments/ana/rollbacks', { ...BY_USER, expectedRevision: 3 })
    const again = await api.post('/agent-deployments/ana/activations', body, 'k')
    expect([first.status, again.status]).toEqual([200, 200])
    expect(again.body.activation).toEqual(first.body.activation)
    expect(again.body.deployment).toMatchObject({ revision: 4, activeVersion: '2.0.0' })
  })

  test('of two installations at once one makes the deployment, the other finds it', async () => {
    const api = open().api()
    const replies = await Promise.all([install(api), install(api)])
    const outcomes = replies.map(({ status, body }) => `${status} ${body.replayed}`)
    expect(outcomes.toSorted()).toEqual(['200 true', '201 false'])
    const sameKey = await Promise.all([1, 2].map(() => install(api, { deployment: { id: 'bo' } }, 'one key')))
    expect(sameKey.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 201])
    expect((await api.get('/agent-deployments/bo/activations')).body).toHaveLength(1)
  })

  test('of two activations at one revision one wins', async () => {
    const api = open().api()
    const revision = await installVersions(api, ['1.0.0', '2.0.0', '3.0.0'])
    const replies = await Promise.all(
      ['1.0.0', '2.0.0'].map((version) =>
        api.post('/agent-deployments/ana/activations', { ...BY_USER, version, expectedRevision: revision }),
      ),
    )
    expect(replies.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409])
    const [won] = replies.filter(({ status }) => status === 200)
    const read = (await api.get('/agent-deployments/ana')).body
    expect(read.deployment).toEqual(won?.body.deployment)
    expect(read.definition.version).toBe(won?.body.deployment.activeVersion)
  })

  test('activations are walked newest first by their cursor', async () => {
    const api = open().api()
    await installVersions(api, ['1.0.0', '2.0.0', '3.0.0'])
    const path = '/agent-deployments/ana/activations'
    const first = await api.get(`${path}?limit=2`)
    const cursor = first.headers.get('x-next-cursor') ?? ''
    const rest = await api.get(`${path}?limit=2&cursor=${encodeURIComponent(cursor)}`)
    const versions = [...first.body, ...rest.body].map(({ toVersion }: { toVersion: string }) => toVersion)
    expect(versions).toEqual(['3.0.0', '2.0.0', '1.0.0'])
    expect(rest.headers.get('x-next-cursor')).toBeNull()
    expect((await api.get(`${path}?cursor=${cursor}x`)).status).toBe(400)
  })
})
