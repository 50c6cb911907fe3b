/** The one table of what the kernel can do, what that needs and where it is served. Contract: kernel-1.md 17. */

export const COMPONENTS = [
  'run dispatcher',
  'runbook execution audit store',
  'approval authorizer',
  'project store',
  'collaboration store',
  'agent registry store',
  'compilation record store',
  'team registry store',
  'source monitor store',
  'outreach store contracts',
  'skill catalog',
  'outreach dispatcher',
  'artifact catalog',
  'artifact content store',
  'artifact content resolver',
  'conversation store',
  'conversation coordinator',
  'skill binding store',
  'skill binding upgrade contract',
  'skill registry',
  'source policy lifecycle',
  'authoring compiler',
  'skill search provider',
  'change-set store and authoring worker',
  'workforce lifecycle authority',
  'bundle installation store and host actor',
] as const
/** A part that a kernel may lack. */
export type Component = (typeof COMPONENTS)[number]

export interface Operation {
  name: string
  /** In the order in which they are missed. */
  needs: readonly Component[]
  /** `METHOD path`, below the API root; none for what the kernel does by itself. */
  routes: readonly string[]
  /** Changes installed skills: refused without authority. */
  mutates: boolean
}

export interface Capability {
  id: string
  version: string
  operations: readonly Operation[]
}

type Routes = Readonly<Record<string, string | readonly string[]>>

/** Operations with their routes, that need the same. */
const operations = (
  needs: Component | readonly Component[] | undefined,
  routes: Routes,
  mutates = false,
): Operation[] =>
  Object.entries(routes).map(([name, route]) => ({
    name,
    needs: needs === undefined ? [] : [needs].flat(),
    routes: [route].flat(),
    mutates,
  }))

const always = (routes: Routes): Operation[] => operations(undefined, routes)

/** Of agents and teams alike, below their deployments. */
const amendments = (deployments: string): Routes => ({
  'propose-amendment': `POST ${deployments}/{id}/amendments`,
  'list-amendments': `GET ${deployments}/{id}/amendments`,
  'get-amendment': `GET ${deployments}/{id}/amendments/{amendmentId}`,
  'evaluate-amendment': `POST ${deployments}/{id}/amendments/{amendmentId}/evaluations`,
  'resolve-amendment': `POST ${deployments}/{id}/amendments/{amendmentId}/decisions`,
  'activate-amendment': `POST ${deployments}/{id}/amendments/{amendmentId}/activations`,
})

/** Of bindings, which agents and teams have. */
const bindings = (method: string, rest = ''): string[] =>
  ['agent', 'team'].map((family) => `${method} /${family}-deployments/{id}/skill-bindings${rest}`)

const CHANGE_SET = '/authoring/workforce/change-sets/{id}'
const COMMANDS = 'POST /agent-runs/{id}/commands'
const CONVERSATION = '/conversations/{id}'
const OUTREACH = '/projects/{id}/outreach'
const SUBSCRIPTION = '/event-source-subscriptions/{id}'

const capability = (id: string, version: string, ...parts: readonly Operation[][]): Capability => ({
  id,
  version,
  operations: parts.flat(),
})

export const CAPABILITIES: readonly Capability[] = [
  capability(
    'objectives',
    '1',
    always({
      create: 'POST /objectives',
      list: 'GET /objectives',
      get: 'GET /objectives/{id}',
      update: 'PUT /objectives/{id}',
    }),
  ),
  capability(
    'runbooks',
    '2',
    always({
      list: 'GET /runbooks',
      get: 'GET /runbooks/{id}',
      update: 'PATCH /runbooks/{id}',
      execute: 'POST /runbooks/{id}/runs',
      reconcile: 'POST /runbooks/schedule-reconciliations',
    }),
  ),
  capability(
    'event-source-subscriptions',
    '1',
    always({
      create: 'POST /event-source-subscriptions',
      list: 'GET /event-source-subscriptions',
      get: `GET ${SUBSCRIPTION}`,
      update: `PATCH ${SUBSCRIPTION}`,
      retire: `POST ${SUBSCRIPTION}/retirements`,
      'report-health': `POST ${SUBSCRIPTION}/health-reports`,
      'get-checkpoint': `GET ${SUBSCRIPTION}/checkpoint`,
      'advance-checkpoint': `POST ${SUBSCRIPTION}/checkpoint-advancements`,
    }),
  ),
  capability('event-routing', '1', always({ route: 'POST /events' })),
  capability(
    'agent-runs',
    '2',
    always({
      list: 'GET /agent-runs',
      get: 'GET /agent-runs/{id}',
      pause: COMMANDS,
      resume: COMMANDS,
      cancel: COMMANDS,
      intervene: COMMANDS,
      'inspect-admission': 'GET /agent-runs/admission',
    }),
    operations('run dispatcher', { create: 'POST /agent-runs' }),
    operations('runbook execution audit store', { audit: 'GET /agent-runs/{id}/runbook-audit' }),
  ),
  capability('agent-turns', '1', always({ list: 'GET /agent-turns', get: 'GET /agent-turns/{id}' })),
  capability('action-calls', '1', always({ list: 'GET /action-calls', get: 'GET /action-calls/{id}' })),
  capability('activity', '1', always({ list: 'GET /activity' })),
  capability(
    'action-approvals',
    '1',
    always({ list: 'GET /action-approvals', get: 'GET /action-approvals/{id}' }),
    operations('approval authorizer', { resolve: 'POST /action-approvals/{id}/decisions' }),
  ),
  capability(
    'projects',
    '1',
    operations('project store', {
      create: 'POST /projects',
      list: 'GET /projects',
      get: 'GET /projects/{id}',
      patch: 'PATCH /projects/{id}',
    }),
  ),
  capability(
    'agent-requests',
    '1',
    operations('collaboration store', {
      create: 'POST /agent-requests',
      list: 'GET /agent-requests',
      get: 'GET /agent-requests/{id}',
      respond: 'POST /agent-requests/{id}/responses',
      complete: ['POST /agent-requests/{id}/completions', 'POST /agent-requests/{id}/completion-review'],
    }),
  ),
  capability(
    'agent-definitions',
    '8',
    operations('agent registry store', {
      list: 'GET /agent-deployments',
      get: 'GET /agent-deployments/{id}',
      update: 'PUT /agent-deployments/{id}',
      deploy: 'POST /agent-installations',
      activate: 'POST /agent-deployments/{id}/activations',
      rollback: 'POST /agent-deployments/{id}/rollbacks',
      'list-activations': 'GET /agent-deployments/{id}/activations',
      ...amendments('/agent-deployments'),
    }),
    operations('compilation record store', { 'list-compilations': 'GET /agent-deployments/{id}/compilations' }),
  ),
  capability(
    'team-definitions',
    '4',
    operations('team registry store', {
      register: 'POST /team-definitions',
      get: ['GET /team-definitions/{id}', 'GET /team-deployments/{id}'],
      deploy: 'POST /team-deployments',
      list: 'GET /team-deployments',
      update: 'PUT /team-deployments/{id}',
      activate: 'POST /team-deployments/{id}/activations',
      'list-activations': 'GET /team-deployments/{id}/activations',
      ...amendments('/team-deployments'),
    }),
  ),
  capability(
    'source-monitors',
    '1',
    operations('source monitor store', {
      'list-observations': 'GET /projects/{id}/source-monitors/{monitorId}/observations',
      'get-checkpoint': 'GET /projects/{id}/source-monitors/{monitorId}/checkpoint',
    }),
  ),
  capability(
    'outreach',
    '1',
    operations('outreach store contracts', { list: `GET ${OUTREACH}`, get: `GET ${OUTREACH}/{threadId}` }),
    operations(['outreach store contracts', 'skill catalog'], { create: `POST ${OUTREACH}` }),
    operations(['outreach store contracts', 'outreach dispatcher'], {
      deliver: `POST ${OUTREACH}/{threadId}/messages/{messageId}/deliveries`,
    }),
  ),
  capability(
    'artifacts',
    '1',
    operations('artifact catalog', {
      register: 'POST /artifacts',
      list: 'GET /artifacts',
      get: 'GET /artifacts/{id}',
    }),
    operations('artifact content store', {
      upload: 'POST /artifact-content',
      download: 'GET /artifacts/{id}/content',
    }),
    operations('artifact content resolver', { resolve: 'POST /artifacts/{id}/resolve' }),
  ),
  capability(
    'conversations',
    '4',
    operations('conversation store', {
      create: 'POST /conversations',
      list: 'GET /conversations',
      get: `GET ${CONVERSATION}`,
      post: `POST ${CONVERSATION}/messages`,
      read: [`GET ${CONVERSATION}/messages`, `GET ${CONVERSATION}/messages/{messageId}`],
      changes: `GET ${CONVERSATION}/changes`,
      coordinate: `POST ${CONVERSATION}/participation-rounds`,
      audit: [`GET ${CONVERSATION}/participation-rounds`, `GET ${CONVERSATION}/participation-rounds/{roundId}`],
      receipts: [`PUT ${CONVERSATION}/cursor`, `GET ${CONVERSATION}/cursor`],
      presence: ['PUT', 'DELETE', 'GET'].map((method) => `${method} ${CONVERSATION}/presence`),
    }),
    operations('conversation coordinator', { 'coordinate-automatically': [] }),
  ),
  capability('skill-actions', '1', operations('skill catalog', { list: 'GET /agent-deployments/{id}/skill-actions' })),
  capability(
    'skill-bindings',
    '2',
    operations('skill binding store', {
      list: bindings('GET'),
      upsert: bindings('PUT', '/{bindingId}'),
      disable: bindings('POST', '/{bindingId}/disable'),
    }),
    operations('skill binding upgrade contract', {
      'plan-upgrade': bindings('POST', '/{bindingId}/upgrade-plan'),
      'apply-upgrade': bindings('POST', '/{bindingId}/upgrade'),
    }),
  ),
  capability(
    'registry-lifecycle',
    'registry.lifecycle/v1',
    operations('skill registry', {
      inspect_catalog: 'GET /registry/catalog/{reference}',
      inspect_versions: 'GET /registry/catalog/{reference}/versions',
      inspect_files: 'GET /registry/catalog/{reference}/file',
      inspect_installed: 'GET /registry/installed',
      verify: 'POST /registry/catalog/{reference}/verify',
      verify_installed: 'POST /registry/installed/{reference}/verify',
    }),
    operations(
      'skill registry',
      {
        install: 'POST /registry/catalog/{reference}/install',
        update: 'POST /registry/installed/{reference}/update',
        update_all: 'POST /registry/installed/update-all',
        pin: 'POST /registry/installed/{reference}/pin',
        unpin: 'POST /registry/installed/{reference}/unpin',
        uninstall: 'DELETE /registry/installed/{reference}',
      },
      true,
    ),
  ),
  capability(
    'source-policies',
    'kernel.source-policy/v1',
    operations('source policy lifecycle', {
      register: 'POST /source-policies/versions',
      list: 'GET /source-policies',
      get: 'GET /source-policies/{id}',
      'list-versions': 'GET /source-policies/{id}/versions',
      'get-version': 'GET /source-policies/{id}/versions/{version}',
      activate: 'POST /source-policies/{id}/activations',
      'list-activations': 'GET /source-policies/{id}/activations',
      revoke: 'POST /source-policies/{id}/revocations',
    }),
  ),
  capability(
    'workforce-authoring',
    '12',
    operations('authoring compiler', { compile: 'POST /authoring/workforce/compile' }),
    operations('skill search provider', { search: 'GET /authoring/workforce/skills' }),
    operations('change-set store and authoring worker', {
      propose: 'POST /authoring/workforce/change-sets',
      get: `GET ${CHANGE_SET}`,
    }),
    operations('workforce lifecycle authority', {
      patch: `PATCH ${CHANGE_SET}/placement`,
      retry: `POST ${CHANGE_SET}/retry`,
      refine: `POST ${CHANGE_SET}/refinements`,
      evaluate: `POST ${CHANGE_SET}/evaluations`,
      approve: `POST ${CHANGE_SET}/approvals`,
      activate: `POST ${CHANGE_SET}/activation`,
      apply: `POST ${CHANGE_SET}/apply`,
    }),
  ),
  capability(
    'workforce-bundles',
    '1',
    always({
      validate: 'POST /workforce-bundles/validate',
      inspect: 'POST /workforce-bundles/inspect',
      compare: 'POST /workforce-bundles/compare',
      'preview-installation': 'POST /workforce-bundles/installation-preview',
      'plan-upgrade': 'POST /workforce-bundles/upgrade-plan',
    }),
    operations('bundle installation store and host actor', { install: 'POST /workforce-bundles/install' }),
  ),
]
