import { expect, test } from 'vitest'
import {
  capabilityDocument,
  checkOperation,
  kernelRoutes,
  unavailableTexts,
  type KernelRoute,
  type Wiring,
} from '../../src/kernel/capabilities.ts'
import { COMPONENTS, type Component } from '../../src/kernel/capability-table.ts'

const ALL = {
  components: new Set(COMPONENTS),
  served: new Set(kernelRoutes().map(({ method, path }) => `${method} ${path}`)),
  mutationAuthority: true,
}

const refusalOf = (route: KernelRoute, wiring: Wiring): unknown => {
  try {
    return checkOperation(route, wiring)
  } catch (error) {
    return error
  }
}

const advertised = (components: ReadonlySet<Component>): Set<string> =>
  new Set(
    capabilityDocument({ ...ALL, components }).capabilities.flatMap(({ id, operations }) =>
      operations.map((operation) => `${id} ${operation}`),
    ),
  )

test('kernel#15 with everything wired nothing is refused; the texts of 501 are 101, all distinct; versions are those of the table', () => {
  for (const route of kernelRoutes()) expect(() => checkOperation(route, ALL)).not.toThrow()
  const texts = unavailableTexts()
  expect(texts).toHaveLength(101)
  expect(new Set(texts).size).toBe(101)
  const { apiVersion, capabilities } = capabilityDocument(ALL)
  expect(apiVersion).toBe('agent-kernel/v1')
  expect(Object.fromEntries(capabilities.map(({ id, version }) => [id, version]))).toEqual({
    objectives: '1',
    runbooks: '2',
    'event-source-subscriptions': '1',
    'event-routing': '1',
    'agent-runs': '2',
    'agent-turns': '1',
    'action-calls': '1',
    activity: '1',
    'action-approvals': '1',
    projects: '1',
    'agent-requests': '1',
    'agent-definitions': '8',
    'team-definitions': '4',
    'source-monitors': '1',
    outreach: '1',
    artifacts: '1',
    conversations: '4',
    'skill-actions': '1',
    'skill-bindings': '2',
    'registry-lifecycle': 'registry.lifecycle/v1',
    'source-policies': 'kernel.source-policy/v1',
    'workforce-authoring': '12',
    'workforce-bundles': '1',
  })
})

test('kernel#14 without one component its operations vanish and its routes name it; all others stay', () => {
  const all = advertised(ALL.components)
  for (const missing of COMPONENTS) {
    const components = new Set(COMPONENTS.filter((one) => one !== missing))
    const gone = [...all].filter((operation) => !advertised(components).has(operation))
    expect([missing, gone.length > 0]).toEqual([missing, true])
    const refusals = kernelRoutes().flatMap((route) => {
      const refusal = refusalOf(route, { ...ALL, components })
      return refusal ? [{ ...route, refusal }] : []
    })
    for (const { capability, operation, refusal } of refusals) {
      const message = `${missing} is not configured: ${capability} ${operation.name} is unavailable`
      expect(refusal).toMatchObject({ status: 501, message })
    }
    const named = new Set(refusals.map(({ capability, operation }) => `${capability} ${operation.name}`))
    expect([...named].sort()).toEqual(gone.filter((name) => name !== 'conversations coordinate-automatically').sort())
  }
})

test('an advertised operation is never refused, and one that is not always is, whatever is wired', () => {
  for (let mask = 0; mask < 200; mask++) {
    const components = new Set(COMPONENTS.filter((_, i) => (mask * 2654435761) % (i + 7) > i / 3))
    const wiring = { ...ALL, components, mutationAuthority: mask % 2 === 0 }
    const offered = new Set(
      capabilityDocument(wiring).capabilities.flatMap(({ id, operations }) =>
        operations.map((name) => `${id} ${name}`),
      ),
    )
    for (const route of kernelRoutes()) {
      const isOffered = offered.has(`${route.capability} ${route.operation.name}`)
      expect(refusalOf(route, wiring) === undefined).toBe(isOffered)
    }
  }
})

test('kernel2#15 without authority six operations are absent and forbidden, not missing; without the registry they are 501', () => {
  const wiring = { ...ALL, mutationAuthority: false }
  const refused = kernelRoutes().filter(({ operation }) => operation.mutates)
  expect(refused).toHaveLength(6)
  for (const route of refused) {
    expect(() => checkOperation(route, wiring)).toThrowError(expect.objectContaining({ status: 403 }))
    const none = { ...wiring, components: new Set<Component>() }
    expect(() => checkOperation(route, none)).toThrowError(expect.objectContaining({ status: 501 }))
  }
  const registry = capabilityDocument(wiring).capabilities.find(({ id }) => id === 'registry-lifecycle')
  expect(registry?.operations).toHaveLength(6)
})

/** Every route of the specification, by method and path. */
const SPECIFIED = [
  'GET /activity',
  ...both('POST GET', '/objectives'),
  ...both('GET PUT', '/objectives/{id}'),
  ...both('POST GET', '/projects'),
  ...both('GET PATCH', '/projects/{id}'),
  ...both('POST GET', '/agent-runs'),
  ...['', '/admission', '/{id}', '/{id}/runbook-audit'].map((path) => `GET /agent-runs${path}`),
  'POST /agent-runs/{id}/commands',
  ...['agent-turns', 'agent-requests', 'action-calls', 'action-approvals'].flatMap((name) => [
    `GET /${name}`,
    `GET /${name}/{id}`,
  ]),
  'POST /agent-requests',
  ...['responses', 'completions', 'completion-review'].map((name) => `POST /agent-requests/{id}/${name}`),
  'POST /action-approvals/{id}/decisions',
  'POST /agent-installations',
  'GET /agent-deployments/{id}/compilations',
  'POST /agent-deployments/{id}/rollbacks',
  'GET /agent-deployments/{id}/skill-actions',
  'POST /team-definitions',
  'GET /team-definitions/{id}',
  'POST /team-deployments',
  ...['/agent-deployments', '/team-deployments'].flatMap((base) => [
    `GET ${base}`,
    ...both('GET PUT', `${base}/{id}`),
    ...both('POST GET', `${base}/{id}/activations`),
    ...both('POST GET', `${base}/{id}/amendments`),
    `GET ${base}/{id}/amendments/{amendmentId}`,
    ...['evaluations', 'decisions', 'activations'].map((name) => `POST ${base}/{id}/amendments/{amendmentId}/${name}`),
    `GET ${base}/{id}/skill-bindings`,
    `PUT ${base}/{id}/skill-bindings/{bindingId}`,
    ...['disable', 'upgrade-plan', 'upgrade'].map((name) => `POST ${base}/{id}/skill-bindings/{bindingId}/${name}`),
  ]),
  ...['', '/versions', '/file'].map((path) => `GET /registry/catalog/{reference}${path}`),
  ...['verify', 'install'].map((name) => `POST /registry/catalog/{reference}/${name}`),
  'GET /registry/installed',
  'POST /registry/installed/update-all',
  ...['verify', 'pin', 'unpin', 'update'].map((name) => `POST /registry/installed/{reference}/${name}`),
  'DELETE /registry/installed/{reference}',
  ...both('POST GET', '/artifacts'),
  'GET /artifacts/{id}',
  'POST /artifact-content',
  'GET /artifacts/{id}/content',
  'POST /artifacts/{id}/resolve',
  ...both('POST GET', '/conversations'),
  'GET /conversations/{id}',
  ...both('POST GET', '/conversations/{id}/messages'),
  'GET /conversations/{id}/messages/{messageId}',
  'GET /conversations/{id}/changes',
  ...both('POST GET', '/conversations/{id}/participation-rounds'),
  'GET /conversations/{id}/participation-rounds/{roundId}',
  ...both('PUT GET', '/conversations/{id}/cursor'),
  ...both('PUT DELETE GET', '/conversations/{id}/presence'),
  'GET /runbooks',
  ...both('GET PATCH', '/runbooks/{id}'),
  'POST /runbooks/{id}/runs',
  'POST /runbooks/schedule-reconciliations',
  ...both('POST GET', '/event-source-subscriptions'),
  ...both('GET PATCH', '/event-source-subscriptions/{id}'),
  ...['retirements', 'health-reports', 'checkpoint-advancements'].map(
    (name) => `POST /event-source-subscriptions/{id}/${name}`,
  ),
  'GET /event-source-subscriptions/{id}/checkpoint',
  'POST /events',
  ...['observations', 'checkpoint'].map((name) => `GET /projects/{id}/source-monitors/{monitorId}/${name}`),
  ...both('POST GET', '/projects/{id}/outreach'),
  'GET /projects/{id}/outreach/{threadId}',
  'POST /projects/{id}/outreach/{threadId}/messages/{messageId}/deliveries',
  'POST /source-policies/versions',
  'GET /source-policies',
  'GET /source-policies/{id}',
  'GET /source-policies/{id}/versions',
  'GET /source-policies/{id}/versions/{version}',
  ...both('POST GET', '/source-policies/{id}/activations'),
  'POST /source-policies/{id}/revocations',
  'POST /authoring/workforce/compile',
  'GET /authoring/workforce/skills',
  'POST /authoring/workforce/change-sets',
  'GET /authoring/workforce/change-sets/{id}',
  'PATCH /authoring/workforce/change-sets/{id}/placement',
  ...['retry', 'refinements', 'evaluations', 'approvals', 'activation', 'apply'].map(
    (name) => `POST /authoring/workforce/change-sets/{id}/${name}`,
  ),
  ...['validate', 'inspect', 'compare', 'installation-preview', 'upgrade-plan', 'install'].map(
    (name) => `POST /workforce-bundles/${name}`,
  ),
]

function both(methods: string, path: string): string[] {
  return methods.split(' ').map((method) => `${method} ${path}`)
}

test('the table has the routes of the specification and no others, health and capabilities aside', () => {
  const routes = kernelRoutes().map(({ method, path }) => `${method} ${path}`)
  expect(routes.sort()).toEqual([...new Set(SPECIFIED)].sort())
})
