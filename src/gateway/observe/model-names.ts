import { OTHER } from '../../base/metrics.ts'
import type { ModelTable } from '../cost/model-table.ts'
import type { UsageRecord } from '../model.ts'
import type { OrganizationState } from '../state/organization-state.ts'

/** Names that an organization's series tell apart. */
const MOST_NAMES = 200

type Named = Pick<UsageRecord, 'organization_id' | 'model_used' | 'model_requested' | 'provider'>

/** What a series calls a model: a name that the configuration or the model table holds, else `other`. Contract: gateway.md 11. */
export class ModelNames {
  readonly #stateOf: (organizationId: number) => OrganizationState | undefined
  readonly #table: () => ModelTable
  readonly #told = new Map<number, Set<string>>()
  readonly #configured = new WeakMap<OrganizationState, ReadonlySet<string>>()

  constructor(stateOf: (organizationId: number) => OrganizationState | undefined, table: () => ModelTable) {
    this.#stateOf = stateOf
    this.#table = table
  }

  labelOf({ organization_id: organization, model_used: used, model_requested: asked, provider }: Named): string {
    const told = this.#told.get(organization) ?? new Set()
    if (told.size === 0) this.#told.set(organization, told)
    for (const model of used === undefined ? [asked] : [used, asked]) {
      if (told.has(model)) return model
      if (told.size >= MOST_NAMES || !this.#isName(organization, provider, model)) continue
      told.add(model)
      return model
    }
    return OTHER
  }

  #isName(organization: number, provider: string | undefined, model: string): boolean {
    if (provider !== undefined && this.#table().find(provider, model)?.model === model) return true
    const state = this.#stateOf(organization)
    if (!state) return false
    let names = this.#configured.get(state)
    if (!names) this.#configured.set(state, (names = new Set(namesIn(state))))
    return names.has(model)
  }
}

function* namesIn({ aliases, credentials }: OrganizationState): Iterable<string> {
  for (const { name, members, fallback_models: fallbacks } of aliases) {
    yield name
    yield* fallbacks
    for (const { model } of members) if (model !== undefined) yield model
  }
  for (const { defaultModel, modelMapping, allowedModels, config } of credentials) {
    if (defaultModel !== undefined) yield defaultModel
    yield* modelMapping.keys()
    yield* modelMapping.values()
    for (const model of allowedModels) if (!model.endsWith('*')) yield model
    if (typeof config.deployment === 'string') yield config.deployment
  }
}
