import { path } from '../transport.ts'
import type * as plan from './plan-types.ts'
import type * as run from './run-types.ts'
import type * as wire from './types.ts'
import type { CallOptions, Wire, WriteOptions } from './wire.ts'
import type * as work from './work-types.ts'

/** One method per route of kernel-1.md 2 to 10; each throws `KernelApiError`. */

export class Objectives {
  readonly #wire: Wire

  constructor(connection: Wire) {
    this.#wire = connection
  }

  create(fields: plan.NewObjective, options?: WriteOptions): Promise<plan.Objective> {
    return this.#wire.write('POST', path`/objectives`, fields, options)
  }

  list(
    query: wire.PageQuery & wire.OwnerQuery & { status?: readonly plan.ObjectiveStatus[] } = {},
    options?: CallOptions,
  ): Promise<wire.Page<plan.Objective>> {
    return this.#wire.page(path`/objectives`, query, options)
  }

  get(id: string, options?: CallOptions): Promise<plan.ObjectiveDetails> {
    return this.#wire.get(path`/objectives/${id}`, {}, options)
  }

  replace(id: string, fields: plan.ObjectiveReplacement, options?: WriteOptions): Promise<plan.Objective> {
    return this.#wire.write('PUT', path`/objectives/${id}`, fields, options)
  }
}

export class Projects {
  readonly #wire: Wire

  constructor(connection: Wire) {
    this.#wire = connection
  }

  create(fields: plan.NewProject, options?: WriteOptions): Promise<plan.Project> {
    return this.#wire.write('POST', path`/projects`, fields, options)
  }

  list(
    query: wire.PageQuery & wire.OwnerQuery & { status?: readonly plan.ProjectStatus[]; objectiveId?: string } = {},
    options?: CallOptions,
  ): Promise<wire.Page<plan.Project>> {
    return this.#wire.page(path`/projects`, query, options)
  }

  get(id: string, options?: CallOptions): Promise<plan.Project> {
    return this.#wire.get(path`/projects/${id}`, {}, options)
  }

  patch(id: string, fields: plan.ProjectPatch, options?: WriteOptions): Promise<plan.Project> {
    return this.#wire.write('PATCH', path`/projects/${id}`, fields, options)
  }
}

export class Runs {
  readonly #wire: Wire

  constructor(connection: Wire) {
    this.#wire = connection
  }

  create(fields: run.NewRun, options?: WriteOptions): Promise<run.RunChange> {
    return this.#wire.write('POST', path`/agent-runs`, fields, options)
  }

  list(query: run.RunQuery = {}, options?: CallOptions): Promise<wire.Page<run.Run>> {
    return this.#wire.page(path`/agent-runs`, query, options)
  }

  get(id: string, options?: CallOptions): Promise<run.Run> {
    return this.#wire.get(path`/agent-runs/${id}`, {}, options)
  }

  command(id: string, command: run.RunCommand, options?: WriteOptions): Promise<run.RunChange> {
    return this.#wire.write('POST', path`/agent-runs/${id}/commands`, command, options)
  }

  /** Why runs are claimed, or not. */
  admission(query: run.AdmissionQuery = {}, options?: CallOptions): Promise<run.AdmissionReport> {
    return this.#wire.get(path`/agent-runs/admission`, query, options)
  }

  audit(id: string, options?: CallOptions): Promise<wire.JsonObject> {
    return this.#wire.get(path`/agent-runs/${id}/runbook-audit`, {}, options)
  }
}

export class Turns {
  readonly #wire: Wire

  constructor(connection: Wire) {
    this.#wire = connection
  }

  list(query: run.TurnQuery, options?: CallOptions): Promise<wire.Page<run.Turn>> {
    return this.#wire.page(path`/agent-turns`, query, options)
  }

  get(id: string, options?: CallOptions): Promise<run.Turn> {
    return this.#wire.get(path`/agent-turns/${id}`, {}, options)
  }
}

export class Requests {
  readonly #wire: Wire

  constructor(connection: Wire) {
    this.#wire = connection
  }

  create(fields: work.NewAgentRequest, options?: WriteOptions): Promise<work.AgentRequestChange> {
    return this.#wire.write('POST', path`/agent-requests`, fields, options)
  }

  list(query: work.AgentRequestQuery = {}, options?: CallOptions): Promise<wire.Page<work.AgentRequest>> {
    return this.#wire.page(path`/agent-requests`, query, options)
  }

  get(id: string, options?: CallOptions): Promise<work.AgentRequest> {
    return this.#wire.get(path`/agent-requests/${id}`, {}, options)
  }

  respond(id: string, response: work.AgentRequestResponse, options?: WriteOptions): Promise<work.AgentRequestChange> {
    return this.#wire.write('POST', path`/agent-requests/${id}/responses`, response, options)
  }

  /** The key is required. */
  complete(
    id: string,
    completion: work.AgentRequestCompletion,
    options: WriteOptions & { idempotencyKey: string },
  ): Promise<work.AgentRequestChange> {
    return this.#wire.write('POST', path`/agent-requests/${id}/completions`, completion, options)
  }

  /** The key is required. */
  review(
    id: string,
    review: work.CompletionReview,
    options: WriteOptions & { idempotencyKey: string },
  ): Promise<work.AgentRequestChange> {
    return this.#wire.write('POST', path`/agent-requests/${id}/completion-review`, review, options)
  }
}

export class ActionCalls {
  readonly #wire: Wire

  constructor(connection: Wire) {
    this.#wire = connection
  }

  list(query: work.CallQuery = {}, options?: CallOptions): Promise<wire.Page<work.ActionCall>> {
    return this.#wire.page(path`/action-calls`, query, options)
  }

  get(id: string, options?: CallOptions): Promise<work.ActionCall> {
    return this.#wire.get(path`/action-calls/${id}`, {}, options)
  }
}

export class Approvals {
  readonly #wire: Wire

  constructor(connection: Wire) {
    this.#wire = connection
  }

  list(query: work.ApprovalQuery = {}, options?: CallOptions): Promise<wire.Page<work.Approval>> {
    return this.#wire.page(path`/action-approvals`, query, options)
  }

  get(id: string, options?: CallOptions): Promise<work.Approval> {
    return this.#wire.get(path`/action-approvals/${id}`, {}, options)
  }

  /** `decisionId` is the key where no other is given; one of both is required. */
  decide(id: string, decision: work.ApprovalDecision, options: WriteOptions = {}): Promise<work.Decided> {
    const { idempotencyKey = decision.decisionId, ...rest } = options
    return this.#wire.write('POST', path`/action-approvals/${id}/decisions`, decision, {
      ...rest,
      ...(idempotencyKey !== undefined && { idempotencyKey }),
    })
  }
}
