import { path } from '../transport.ts'
import type * as skill from './skill-types.ts'
import type { Owner } from './types.ts'
import type { CallOptions, Wire, WriteOptions } from './wire.ts'

/** One method per route of kernel-2.md 2, for the deployments of agents and of teams; each throws `KernelApiError`. */
export class Skills {
  readonly #wire: Wire

  constructor(connection: Wire) {
    this.#wire = connection
  }

  /** What an agent may do with its enabled bindings. */
  actions(
    deploymentId: string,
    query: skill.SkillActionQuery = {},
    options?: CallOptions,
  ): Promise<{ deploymentId: string; actions: skill.SkillAction[] }> {
    return this.#wire.get(path`/agent-deployments/${deploymentId}/skill-actions`, query, options)
  }

  bindings({ type, id }: Owner, options?: CallOptions): Promise<skill.BindingList> {
    return this.#wire.get(path`/${type}-deployments/${id}/skill-bindings`, {}, options)
  }

  /** A disabled one is enabled by it. */
  put(
    { type, id }: Owner,
    bindingId: string,
    change: skill.PutBinding,
    options?: WriteOptions,
  ): Promise<skill.ChangedBinding> {
    const at = path`/${type}-deployments/${id}/skill-bindings/${bindingId}`
    return this.#wire.write('PUT', at, change, options)
  }

  disable(
    { type, id }: Owner,
    bindingId: string,
    change: skill.BindingChange,
    options?: WriteOptions,
  ): Promise<skill.ChangedBinding> {
    const at = path`/${type}-deployments/${id}/skill-bindings/${bindingId}/disable`
    return this.#wire.write('POST', at, change, options)
  }
}
