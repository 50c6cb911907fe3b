import { describe, expect, test } from 'vitest'
import type { KubernetesApi } from '../../support/kubernetes/api.ts'
import { clientOf, cluster, deployment, NOW, use } from './support.ts'

const calls = (api: KubernetesApi) =>
  api.calls
    .filter(({ path }) => !/^\/api(s|\/v1|s\/[^/]+\/[^/]+)$/.test(path))
    .map(({ method, path }) => `${method} ${path}`)
const last = (api: KubernetesApi) => api.calls.at(-1)

describe('orchestrator nodes against an API server', () => {
  test('runbook#102 orch_get: an object by kind, in its namespace and version', async () => {
    const api = await cluster()
    api.put(deployment('web'))
    api.put({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1' } })
    api.put({ apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'w', namespace: 'shop' }, size: 2 ** 40 })
    const { output } = await use(api, 'orch_get', { kind: 'deployment', name: 'web' })
    expect(output).toMatchObject({ object: { kind: 'Deployment', metadata: { name: 'web' }, spec: { replicas: 1 } } })
    expect((await use(api, 'orch_get', { kind: 'Node', name: 'node-1' })).status).toBe('succeeded')
    const widget = { kind: 'Widget', apiVersion: 'example.com/v1', name: 'w', namespace: 'shop' }
    expect((await use(api, 'k8s-get', widget)).output).toMatchObject({ object: { size: 2 ** 40 } })
    expect(calls(api)).toEqual([
      'GET /apis/apps/v1/namespaces/default/deployments/web',
      'GET /api/v1/nodes/node-1',
      'GET /apis/example.com/v1/namespaces/shop/widgets/w',
    ])
  })

  test('discovery is asked once, and again when a kind is missing', async () => {
    const api = await cluster()
    api.put(deployment('web'))
    const client = clientOf(api)
    const signal = AbortSignal.timeout(5000)
    const target = { clusterId: '1', kind: 'Deployment', name: 'web' }
    await client.get(target, signal)
    await client.get(target, signal)
    const discovery = () => api.calls.filter(({ path }) => path === '/apis').length
    expect(discovery()).toBe(1)
    await expect(client.get({ ...target, kind: 'Gadget' }, signal)).rejects.toThrow('the cluster has no kind "Gadget"')
    await client.get(target, signal)
    expect(discovery()).toBe(2)
    await expect(client.get({ ...target, apiVersion: 'gone/v1' }, signal)).rejects.toMatchObject({ status: 404 })
    // an extension that is down hides no other kind
    api.fault = ({ path }) => (path === '/apis/apps/v1' ? { status: 503 } : undefined)
    const other = clientOf(api)
    api.put({ apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'j' } })
    await expect(other.get({ ...target, kind: 'Job', name: 'j' }, signal)).resolves.toMatchObject({ kind: 'Job' })
    await expect(other.get(target, signal)).rejects.toThrow('apps/v1: refused by the test')
  })

  test('runbook#102 orch_list: selectors, pages, order, truncation', async () => {
    const api = await cluster()
    for (let i = 1; i <= 7; i++) {
      const metadata = { name: `p${8 - i}`, namespace: 'default', labels: { tier: i % 2 ? 'odd' : 'even' } }
      api.put({ apiVersion: 'v1', kind: 'Pod', metadata, status: { phase: i > 5 ? 'Running' : 'Pending' } })
    }
    const names = (value: unknown) =>
      (value as { list: { kind: string; metadata: { name: string } }[] }).list.map(
        ({ kind, metadata }) => `${kind} ${metadata.name}`,
      )
    const odd = (await use(api, 'orch_list', { kind: 'Pod', labelSelector: 'tier=odd' })).output
    expect(odd).toMatchObject({ count: 4, truncated: false })
    expect(names(odd)).toEqual(['Pod p1', 'Pod p3', 'Pod p5', 'Pod p7'])
    const running = await use(api, 'orch_list', { kind: 'Pod', fieldSelector: 'status.phase=Running' })
    expect(names(running.output)).toEqual(['Pod p1', 'Pod p2'])
    expect((await use(api, 'orch_list', { kind: 'Pod', limit: 3 })).output).toMatchObject({ count: 3, truncated: true })
    expect(last(api)?.query).toEqual({ limit: '3' })
  })

  test('a long list comes in pages, and begins again when the server has forgotten it', async () => {
    const api = await cluster()
    for (let i = 0; i < 1200; i++) api.put({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `c${i}` } })
    const client = clientOf(api)
    const request = { clusterId: '1', kind: 'ConfigMap', name: '', limit: 1100 }
    const all = await client.list(request, AbortSignal.timeout(5000))
    expect([all.items.length, all.truncated]).toEqual([1100, true])
    expect(api.calls.slice(-3).map(({ query }) => query)).toEqual([
      { limit: '500' },
      { limit: '500', continue: '500' },
      { limit: '100', continue: '1000' },
    ])
    api.expirePages = true
    const again = await client.list({ ...request, limit: 2000 }, AbortSignal.timeout(5000))
    expect(new Set(again.items.map((item) => (item as { metadata: { name: string } }).metadata.name)).size).toBe(1200)
    api.fault = ({ query }) => (query.continue === undefined ? undefined : { status: 410 })
    await expect(client.list(request, AbortSignal.timeout(5000))).rejects.toMatchObject({ status: 410 })
  })

  test('runbook#102 orch_logs: the default container, the last lines, and whether there were more', async () => {
    const api = await cluster()
    const containers = [{ name: 'app' }, { name: 'side' }]
    const annotations = { 'kubectl.kubernetes.io/default-container': 'side' }
    api.put({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'one', namespace: 'default' }, spec: { containers } })
    api.put({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'two', namespace: 'default', annotations } as never,
      spec: { containers },
    })
    api.setLog('default', 'one', 'app', ['1', '2', '3'])
    api.setLog('default', 'two', 'side', ['a', 'b'])
    expect((await use(api, 'orch_logs', { podName: 'one', tailLines: 2 })).output).toEqual({
      logs: '2\n3\n',
      container: 'app',
      pod: 'one',
      truncated: true,
    })
    expect((await use(api, 'orch_logs', { podName: 'two', sinceSeconds: 60 })).output).toEqual({
      logs: 'a\nb\n',
      container: 'side',
      pod: 'two',
      truncated: false,
    })
    expect(last(api)?.query).toMatchObject({ container: 'side', tailLines: '1001', sinceSeconds: '60' })
    const { error } = await use(api, 'orch_logs', { podName: 'one', container: 'gone' })
    expect(error).toMatchObject({
      code: 'service_rejected',
      message: 'orch_logs: container gone is not valid for pod one',
    })
  })

  test('runbook#102 orch_events: of one object, of the namespace, oldest first', async () => {
    const api = await cluster()
    const event = (name: string, lastTimestamp: string, involvedObject: object, namespace = 'default') =>
      api.put({ apiVersion: 'v1', kind: 'Event', metadata: { name, namespace }, lastTimestamp, involvedObject })
    event('b', '2026-01-02T00:00:00Z', { kind: 'Deployment', name: 'web' })
    event('a', '2026-01-01T00:00:00Z', { kind: 'Deployment', name: 'web' })
    event('c', '2026-01-03T00:00:00Z', { kind: 'Node', name: 'node-1' })
    const names = async (values: object): Promise<unknown> => {
      const { items } = (await use(api, 'orch_events', { ...values })).output as unknown as {
        items: { metadata: { name: string } }[]
      }
      return items.map(({ metadata }) => metadata.name)
    }
    expect(await names({})).toEqual(['a', 'b', 'c'])
    expect(await names({ kind: 'deployment', name: 'web' })).toEqual(['a', 'b'])
    expect(last(api)?.query.fieldSelector).toBe('involvedObject.kind=Deployment,involvedObject.name=web')
    // events of what has no namespace are in "default"
    expect(await names({ kind: 'Node', name: 'node-1', namespace: 'shop' })).toEqual(['c'])
    expect((await use(api, 'orch_events', { kind: 'Node' })).error?.code).toBe('config_invalid')
  })

  test('runbook#102 orch_restart: the pod template gets the time, the rest stays', async () => {
    const api = await cluster()
    api.put(deployment('web'))
    expect((await use(api, 'orch_restart', { kind: 'Deployment', name: 'web' })).output).toEqual({
      success: true,
      message: 'Deployment web restarted',
      name: 'web',
      kind: 'Deployment',
    })
    expect(last(api)).toMatchObject({ method: 'PATCH', contentType: 'application/strategic-merge-patch+json' })
    expect(api.find('Deployment', 'web')?.spec).toMatchObject({
      replicas: 1,
      template: {
        metadata: { annotations: { 'kubectl.kubernetes.io/restartedAt': new Date(NOW).toISOString() } },
        spec: { containers: [{ image: 'a:1' }] },
      },
    })
  })

  test('runbook#102 orch_scale: the scale subresource', async () => {
    const api = await cluster()
    api.put({ ...deployment('db'), kind: 'StatefulSet' })
    expect((await use(api, 'orch_scale', { kind: 'StatefulSet', name: 'db', replicas: 0 })).output).toMatchObject({
      success: true,
      replicas: 0,
    })
    expect(last(api)?.path).toBe('/apis/apps/v1/namespaces/default/statefulsets/db/scale')
    expect(api.find('StatefulSet')?.spec.replicas).toBe(0)
  })

  test('runbook#102 orch_patch: the three types, applied', async () => {
    const api = await cluster()
    api.put(deployment('web'))
    const patch = (values: Record<string, unknown>) =>
      use(api, 'orch_patch', { kind: 'Deployment', name: 'web', ...values })
    const containers = [{ name: 'side', image: 'b:1' }]
    await patch({ patch: { spec: { template: { spec: { containers } } } } })
    expect(api.find('Deployment')?.spec.template.spec.containers).toHaveLength(2)
    await patch({ patchType: 'merge', patch: JSON.stringify({ spec: { template: { spec: { containers } } } }) })
    expect(api.find('Deployment')?.spec.template.spec.containers).toEqual(containers)
    const { output } = await patch({ patchType: 'json', patch: [{ op: 'replace', path: '/spec/replicas', value: 4 }] })
    expect(output).toMatchObject({ success: true, kind: 'Deployment', name: 'web', object: { spec: { replicas: 4 } } })
    expect(api.calls.flatMap(({ method, contentType }) => (method === 'PATCH' ? [contentType] : []))).toEqual([
      'application/strategic-merge-patch+json',
      'application/merge-patch+json',
      'application/json-patch+json',
    ])
    expect((await patch({ patchType: 'json', patch: { spec: 1 } })).error?.code).toBe('config_invalid')
    expect((await patch({ patch: 'no json' })).error?.code).toBe('config_invalid')
    expect(
      (await patch({ patchType: 'json', patch: [{ op: 'test', path: '/kind', value: 'x' }] })).error,
    ).toMatchObject({
      code: 'service_rejected',
      details: { statusCode: 422 },
    })
    api.put({ apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'w' } })
    const widget = await use(api, 'orch_patch', { kind: 'Widget', name: 'w', patch: { size: 1 } })
    expect(widget.error?.message).toContain('application/merge-patch+json')
  })

  test('runbook#102 orch_delete: grace period, propagation; a name never stands for a collection', async () => {
    const api = await cluster()
    api.put(deployment('web'))
    const { output } = await use(api, 'orch_delete', { kind: 'Deployment', name: 'web', gracePeriodSeconds: 5 })
    expect(output).toMatchObject({ success: true, message: 'Deployment web deleted' })
    expect(last(api)?.body).toEqual({
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      propagationPolicy: 'Background',
      gracePeriodSeconds: 5,
    })
    expect(api.find('Deployment')).toBeUndefined()
    for (const name of ['..', '.', 'a/b', '%2e%2e']) {
      expect((await use(api, 'orch_delete', { kind: 'Deployment', name })).error?.code).toBe('config_invalid')
    }
    expect((await use(api, 'orch_get', { kind: 'Pod', name: 'x', namespace: '..' })).error?.code).toBe('config_invalid')
    expect((await use(api, 'orch_get', { kind: 'Pod', name: 'x', clusterId: 2 })).error?.code).toBe('config_invalid')
  })

  const each: [string, Record<string, unknown>][] = [
    ['orch_get', { kind: 'Deployment', name: 'web' }],
    ['orch_list', { kind: 'Deployment' }],
    ['orch_logs', { podName: 'web' }],
    ['orch_events', { kind: 'Deployment', name: 'web' }],
    ['orch_restart', { kind: 'Deployment', name: 'web' }],
    ['orch_scale', { kind: 'Deployment', name: 'web', replicas: 1 }],
    ['orch_patch', { kind: 'Deployment', name: 'web', patch: {} }],
    ['orch_delete', { kind: 'Deployment', name: 'web' }],
  ]
  test.each(each)('runbook#102 %s: 404, 403, 409, 422, 500, no answer', async (type, values) => {
    const api = await cluster()
    const isDiscovery = (path: string) => /^\/(apis|api\/v1|apis\/[^/]+\/[^/]+)$/.test(path)
    const failure = async (fault: object) => {
      api.fault = ({ path }) => (isDiscovery(path) ? undefined : { message: 'as it is', ...fault })
      const { error } = await use(api, type, values)
      return error && { code: error.code, message: error.message }
    }
    const as = (code: string) => ({ code, message: `${type}: as it is` })
    expect(await failure({ status: 404 })).toEqual(as('not_found'))
    expect(await failure({ status: 403 })).toEqual(as('forbidden'))
    expect(await failure({ status: 401 })).toEqual(as('forbidden'))
    expect(await failure({ status: 409 })).toEqual(as('conflict'))
    expect(await failure({ status: 422 })).toEqual(as('service_rejected'))
    expect(await failure({ status: 500 })).toEqual(as('service_rejected'))
    api.fault = ({ path }) => (isDiscovery(path) ? undefined : { hang: true })
    const registryTimeout = await use(api, type, { ...values, timeout: '100ms' })
    expect(registryTimeout.error?.code).toBe('timeout')
  })

  test('a server that is busy is asked again when it says', async () => {
    const api = await cluster()
    api.put(deployment('web'))
    let busy = 2
    api.fault = ({ path }) => (path.endsWith('/web') && busy-- > 0 ? { status: 429, retryAfter: 0 } : undefined)
    const client = clientOf(api)
    const target = { clusterId: '1', kind: 'Deployment', name: 'web' }
    await expect(client.get(target, AbortSignal.timeout(20_000))).resolves.toMatchObject({ kind: 'Deployment' })
    expect(api.calls.filter(({ path }) => path.endsWith('/web'))).toHaveLength(3)
  })

  test('a request has a time limit of its own, and ends with its signal', async () => {
    const api = await cluster()
    api.fault = () => ({ hang: true })
    const target = { clusterId: '1', kind: 'Pod', name: 'web' }
    await expect(clientOf(api, { timeoutMs: 50 }).get(target, AbortSignal.timeout(20_000))).rejects.toMatchObject({
      code: 'network_error',
    })
    const controller = new AbortController()
    const waiting = clientOf(api).get(target, controller.signal)
    setImmediate(() => controller.abort(new Error('enough')))
    await expect(waiting).rejects.toThrow('enough')
  })
})
