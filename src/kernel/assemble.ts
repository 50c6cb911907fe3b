import type { Logger } from 'pino'
import { createHttpTransport } from './actions/http-transport.ts'
import type { ActionParts } from './context.ts'
import { checkOptions, type CheckedOptions, type KernelEngineOptions } from './engine-options.ts'
import { Engine } from './engine/engine.ts'
import type { HealthChecks } from './health.ts'
import type { Scope } from './model/fields.ts'
import { defaultPolicy } from './policy.ts'
import { ModelFailure, type CredentialResolver, type ModelHost } from './ports.ts'
import { Kernel } from './service.ts'
import { scopeKey } from './store/scope-key.ts'
import { newMemoryStore, type KernelStore } from './store/store.ts'
import { watchModel } from './watched-model.ts'
import { componentsOf, type KernelParts } from './wiring.ts'

/** What a `KernelEngine` is made of, from what its embedder gave. Contract: kernel-2.md 14 */

export interface Assembled {
  kernel: Kernel
  engine: Engine
  store: KernelStore
}

/** @param checks of what only its host sees @throws TypeError for an option that does not fit */
export async function assemble(
  given: KernelEngineOptions,
  log: Logger,
  checks: Pick<HealthChecks, 'registry'> = {},
): Promise<Assembled> {
  const options = checkOptions(given)
  const { modelHost, clock } = options
  const opened = options.store ?? options.persistentStore
  if (!opened) log.warn('the kernel has no store: what it knows is gone with this process')
  const store = opened ?? (await newMemoryStore(clock))
  const watched = modelHost && watchModel(modelHost)
  const kernel = makeKernel(options, store, log, { ...checks, ...(watched && { model: watched.check }) })
  return { kernel, engine: makeEngine(options, kernel, watched?.model), store }
}

function makeKernel(options: CheckedOptions, store: KernelStore, log: Logger, checks: HealthChecks): Kernel {
  const { approvalAuthorizer, hostIdentity, registryMutationAuthority: mutationAuthority } = options
  const actions = makeActions(options)
  const parts: KernelParts = {
    agents: true,
    ...(actions && { actions }),
    ...(approvalAuthorizer && { approvalAuthorizer }),
  }
  const hasRunWorkers = options.agentRunWorkers !== undefined || options.dynamicAgentRunWorkers !== undefined
  return new Kernel({
    ...parts,
    store,
    log,
    components: componentsOf(parts, options.runDispatcher ?? hasRunWorkers),
    mutationAuthority,
    ...(hostIdentity && { hostIdentity }),
    checks,
  })
}

function makeActions(options: CheckedOptions): ActionParts | undefined {
  const { skillCatalog: catalog, actionPolicy, actionProposalValidators: validators, transports } = options
  if (!catalog) return undefined
  return {
    catalog,
    policy: actionPolicy ?? defaultPolicy(),
    validators,
    transports: { http: createHttpTransport(), ...transports },
    credentials: credentialsOf(options),
  }
}

/** Of the workers that serve a scope: those that name it, else those that ask which there are. */
function credentialsOf({ actionWorkers, dynamicActionWorkers }: CheckedOptions): CredentialResolver {
  const named = new Set(actionWorkers?.scopes.map(scopeKey))
  const resolverOf = (scope: Scope): CredentialResolver | undefined =>
    named.has(scopeKey(scope)) ? actionWorkers?.credentialResolver : dynamicActionWorkers?.credentialResolver
  return {
    async resolve(scope, reference) {
      const resolver = resolverOf(scope)
      if (!resolver) throw new Error(`nobody knows credential ${reference.kind} ${reference.id}`)
      return resolver.resolve(scope, reference)
    },
  }
}

function makeEngine(
  { workerConcurrencyLimit, agentRunWorkers, dynamicAgentRunWorkers, ...options }: CheckedOptions,
  { context, hints }: Kernel,
  modelHost: ModelHost | undefined,
): Engine {
  const { actionWorkers, dynamicActionWorkers } = options
  const runWorkers = [agentRunWorkers, dynamicAgentRunWorkers].filter((workers) => workers !== undefined)
  return new Engine(context, hints, {
    workerConcurrencyLimit,
    modelHost: modelHost ?? NO_MODEL,
    runWorkers: modelHost ? runWorkers : [],
    actionWorkers: [actionWorkers, dynamicActionWorkers].filter((workers) => workers !== undefined),
  })
}

/** Nobody asks it: without a model nobody takes runs, and they stay queued. */
const NO_MODEL: ModelHost = {
  async propose() {
    throw new ModelFailure('unavailable', 'there is no model')
  },
}
