import { onTestFinished } from 'vitest'
import type { Clock } from '../../../src/base/clock.ts'
import { loadModelTable } from '../../../src/gateway/cost/load.ts'
import { createUpstreams } from '../../../src/gateway/kinds/index.ts'
import { createNetwork } from '../../../src/gateway/kinds/network.ts'
import type { Alias, Settings, Surface } from '../../../src/gateway/model.ts'
import type { AttemptOutcome, Candidate, Rejection, Selection } from '../../../src/gateway/routing/candidate.ts'
import type { RoutingParts } from '../../../src/gateway/routing/organization.ts'
import { Router } from '../../../src/gateway/routing/router.ts'
import type {
  GatewayCaller,
  OpenCredential,
  OpenKey,
  OrganizationState,
} from '../../../src/gateway/state/organization-state.ts'
import { DEFAULT_SETTINGS } from '../../../src/gateway/store/settings.ts'
import { openCredential } from '../open-credential.ts'

export const credential = (id: number, fields: Partial<OpenCredential> = {}): OpenCredential =>
  openCredential(fields.kind ?? 'openai', { id, secrets: { api_key: 'a key' }, ...fields })

export const alias = (id: number, name: string, fields: Partial<Alias> = {}): Alias => ({
  id,
  organization_id: 1,
  name,
  scope: 'organization',
  strategy: 'weighted',
  members: [],
  fallback_models: [],
  fallback_on: ['connect', 'transient', 'rate', 'auth', 'missing'],
  enabled: true,
  created_at: '2026-01-02T03:04:05.000Z',
  updated_at: '2026-01-02T03:04:05.000Z',
  ...fields,
})

export const key = (id: number, fields: Partial<OpenKey> = {}): OpenKey => ({
  id,
  organizationId: 1,
  name: `key ${id}`,
  hashes: [],
  userId: undefined,
  allowedModels: [],
  allowedCredentials: [],
  budget: undefined,
  limits: {},
  maxOutputTokens: undefined,
  expiresAt: undefined,
  enabled: true,
  ...fields,
})

interface World {
  credentials?: OpenCredential[]
  aliases?: Alias[]
  settings?: Partial<Settings>
}

let revision = 0

export const organization = ({ credentials = [], aliases = [], settings = {} }: World): OrganizationState => ({
  id: 1,
  revision: ++revision,
  settings: { ...DEFAULT_SETTINGS, ...settings },
  credentials,
  aliases,
  keys: [],
  users: new Map(),
  metricsTokenHash: undefined,
})

/** A router over one organization, with a clock that stands still until it is moved. */
export function routing(world: World, parts: Partial<RoutingParts> = {}, prices: object[] = []) {
  let state = organization(world)
  let now = 1_800_000_000_000
  const clock: Clock & { advance(ms: number): void } = { now: () => now, advance: (ms) => void (now += ms) }
  const network = createNetwork({ allowedHosts: [], ca: undefined, connectMs: 1000 })
  onTestFinished(() => network.close())
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined }
  const rejected: ({ id: number; until: number } & Rejection)[] = []
  const router = new Router({
    clock,
    models: loadModelTable({ prices }),
    makeUpstream: createUpstreams({ clock, random: () => 0, log, network, runtimeRoles: [], environment: {} }),
    seed: 1,
    retryBudget: 0.2,
    queueLength: 2,
    queueWaitMs: 60_000,
    processes: () => 1,
    onRejected: ({ id }, until, rejection) => rejected.push({ id, until, ...rejection }),
    ...parts,
  })
  router.update(state)
  const caller = (fields: Partial<GatewayCaller> = {}): GatewayCaller => ({
    state,
    userId: undefined,
    key: undefined,
    ...fields,
  })
  return {
    router,
    clock,
    rejected,
    caller,
    update: (changed: World) => {
      state = organization(changed)
      router.update(state)
    },
    select: (
      name: string,
      { surface = 'chat', pin, fallback = true, ...who }: Partial<GatewayCaller> & Options = {},
    ): Selection => router.select(caller(who), name, surface, { pin, fallback }),
  }
}

interface Options {
  surface?: Surface
  pin?: string
  fallback?: boolean
}

const OPEN = new AbortController()

/** The next candidate where nobody has to wait; it is called. */
export function next(selection: Selection, tokens = 10): Candidate | undefined {
  const found = pick(selection, tokens)
  if (found) selection.called()
  return found
}

/** The next candidate where nobody has to wait. */
export function pick(selection: Selection, tokens = 10): Candidate | undefined {
  const found = selection.next(tokens, OPEN)
  if (found instanceof Promise) throw new Error('it waits in line')
  return found
}

export const idOf = (candidate: Candidate | undefined): number | undefined => candidate?.upstream.credential.id

/** Tries candidates, each ending so, until none is left: what was tried, as credential and upstream model. */
export function tries(selection: Selection, outcome: AttemptOutcome = { class: 'missing' }): string[] {
  const found: string[] = []
  for (let each = next(selection); each; each = next(selection)) {
    found.push(`${idOf(each)}/${each.model}`)
    selection.settle(each, outcome, 0)
  }
  return found
}

/** One request that its first pick answers so: which credential it was. */
export function call(selection: Selection, outcome: AttemptOutcome = { class: 'ok' }): number | undefined {
  const picked = next(selection)
  if (picked) selection.settle(picked, outcome, 10)
  return idOf(picked)
}
