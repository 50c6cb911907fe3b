import { path } from '../transport.ts'
import type * as registry from './registry-types.ts'
import type { Page } from './types.ts'
import type { CallOptions, Wire, WriteOptions } from './wire.ts'

/** One method per route of kernel-1.md 11 and 12; each throws `KernelApiError`. */

/** What the deployments of agents and of teams have in common. */
class Deployments<Deployment, Definition, Manifest, Status extends string> {
  protected readonly wire: Wire
  readonly #root: string

  constructor(connection: Wire, root: 'agent-deployments' | 'team-deployments') {
    this.wire = connection
    this.#root = root
  }

  list(
    query: registry.BoundsQuery & { excludeStatuses?: readonly Status[] } = {},
    options?: CallOptions,
  ): Promise<{ items: registry.Deployed<Deployment, Definition>[] }> {
    return this.wire.get(path`/${this.#root}`, query, options)
  }

  get(id: string, options?: CallOptions): Promise<registry.Deployed<Deployment, Definition>> {
    return this.wire.get(path`/${this.#root}/${id}`, {}, options)
  }

  replace(
    id: string,
    replacement: registry.Replacement<Deployment>,
    options?: WriteOptions,
  ): Promise<registry.Replaced<Deployment>> {
    return this.wire.write('PUT', path`/${this.#root}/${id}`, replacement, options)
  }

  activate(
    id: string,
    activation: registry.Activation,
    options?: WriteOptions,
  ): Promise<registry.Activated<Deployment>> {
    return this.wire.write('POST', path`/${this.#root}/${id}/activations`, activation, options)
  }

  activations(
    id: string,
    query: registry.BoundsQuery & { cursor?: string } = {},
    options?: CallOptions,
  ): Promise<Page<registry.ActivationRecord>> {
    return this.wire.page(path`/${this.#root}/${id}/activations`, query, options)
  }

  proposeAmendment(
    id: string,
    proposal: registry.AmendmentProposal<Manifest>,
    options?: WriteOptions,
  ): Promise<registry.Amendment<Manifest>> {
    return this.wire.write('POST', path`/${this.#root}/${id}/amendments`, proposal, options)
  }

  amendments(
    id: string,
    query: registry.BoundsQuery = {},
    options?: CallOptions,
  ): Promise<{ items: registry.Amendment<Manifest>[] }> {
    return this.wire.get(path`/${this.#root}/${id}/amendments`, query, options)
  }

  amendment(id: string, amendmentId: string, options?: CallOptions): Promise<registry.Amendment<Manifest>> {
    return this.wire.get(path`/${this.#root}/${id}/amendments/${amendmentId}`, {}, options)
  }

  evaluateAmendment(
    id: string,
    amendmentId: string,
    evaluation: { expectedRevision: number; evaluations: registry.AmendmentEvaluation[] },
    options?: WriteOptions,
  ): Promise<registry.Amendment<Manifest>> {
    const at = path`/${this.#root}/${id}/amendments/${amendmentId}/evaluations`
    return this.wire.write('POST', at, evaluation, options)
  }

  decideAmendment(
    id: string,
    amendmentId: string,
    decision: registry.AmendmentDecision,
    options?: WriteOptions,
  ): Promise<registry.Amendment<Manifest>> {
    return this.wire.write('POST', path`/${this.#root}/${id}/amendments/${amendmentId}/decisions`, decision, options)
  }

  activateAmendment(
    id: string,
    amendmentId: string,
    activation: registry.AmendmentActivation,
    options?: WriteOptions,
  ): Promise<registry.Activated<Deployment> & { amendment: registry.Amendment<Manifest> }> {
    const at = path`/${this.#root}/${id}/amendments/${amendmentId}/activations`
    return this.wire.write('POST', at, activation, options)
  }
}

export class Agents extends Deployments<
  registry.AgentDeployment,
  registry.AgentDefinition,
  registry.AgentManifest,
  registry.RolloutStatus
> {
  constructor(connection: Wire) {
    super(connection, 'agent-deployments')
  }

  /** Registers the version and makes or moves the deployment. The key is required. */
  install(
    installation: registry.AgentInstallation,
    options: WriteOptions & { idempotencyKey: string },
  ): Promise<registry.Installed> {
    return this.wire.write('POST', path`/agent-installations`, installation, options)
  }

  rollBack(
    id: string,
    step: registry.RollBack,
    options?: WriteOptions,
  ): Promise<registry.Activated<registry.AgentDeployment>> {
    return this.wire.write('POST', path`/agent-deployments/${id}/rollbacks`, step, options)
  }

  compilations(id: string, query: registry.BoundsQuery = {}, options?: CallOptions): Promise<registry.CompilationList> {
    return this.wire.get(path`/agent-deployments/${id}/compilations`, query, options)
  }
}

export class Teams extends Deployments<
  registry.TeamDeployment,
  registry.TeamDefinition,
  registry.TeamManifest,
  registry.TeamStatus
> {
  constructor(connection: Wire) {
    super(connection, 'team-deployments')
  }

  register(manifest: registry.TeamManifest, options?: WriteOptions): Promise<registry.TeamDefinition> {
    return this.wire.write('POST', path`/team-definitions`, manifest, options)
  }

  definition(id: string, version: string, options?: CallOptions): Promise<registry.TeamDefinition> {
    return this.wire.get(path`/team-definitions/${id}`, { version }, options)
  }

  /** All versions, the newest first. */
  definitions(id: string, options?: CallOptions): Promise<registry.TeamDefinition[]> {
    return this.wire.get(path`/team-definitions/${id}`, {}, options)
  }

  deploy(
    deployment: registry.NewTeamDeployment,
    options?: WriteOptions,
  ): Promise<registry.Activated<registry.TeamDeployment>> {
    return this.wire.write('POST', path`/team-deployments`, deployment, options)
  }
}
