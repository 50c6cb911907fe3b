import type { Outcome } from './call-states.ts'
import type { Approval, Decision, Risk, SideEffect } from './model/action.ts'
import type { BudgetState, Usage } from './model/budget.ts'
import type { Amendment } from './model/deployment.ts'
import type { Envelope } from './model/envelope.ts'
import type { Party, Scope } from './model/fields.ts'
import type { PolicyResult } from './model/policy.ts'
import type { Run } from './model/run.ts'
import type { SkillDefinition, Transport } from './model/skill.ts'

/** What the kernel needs of those who embed it. Contract: kernel-1.md 13, kernel-2.md 1. */

/** A call that a run wants to make, as it is judged. */
export interface ProposedAction {
  scope: Scope
  run: Run
  deploymentId: string
  bindingId: string
  skillId: string
  action: string
  arguments: Record<string, unknown>
  risk: Risk
  sideEffect: SideEffect
  budget?: BudgetState
}

/** Says what needs approval. One that throws, or says what is no result, denies. */
export interface ActionPolicy {
  evaluate(proposal: ProposedAction): PolicyResult | Promise<PolicyResult>
}

/** A reason to deny, or undefined. One that throws, or says anything else, denies. */
export type ProposalValidator = (proposal: ProposedAction) => string | undefined | Promise<string | undefined>

/** Who wants to decide on what; `hostIdentity` where the embedding host knows who asks. */
export interface Authorization {
  subject: { kind: 'approval'; approval: Approval } | { kind: 'amendment'; amendment: Amendment }
  decision: Decision
  principal: Party
  hostIdentity?: Party
}

/** Says who may decide. One that throws, or says anything else, denies. */
export interface ApprovalAuthorizer {
  authorize(asked: Authorization): 'allow' | 'deny' | Promise<'allow' | 'deny'>
}

/** Knows the values of credentials, of which records hold references alone. */
export interface CredentialResolver {
  /** Asked anew for each use. @throws with a text that may be shown when there is no such credential */
  resolve(scope: Scope, reference: { kind: string; id: string }): Promise<string>
}

/** What skills there are. */
export interface SkillCatalog {
  /** Undefined where there is none. @throws invalid when several sources have it and none is named */
  find(skillId: string, version: string, sourceIdentity?: string): SkillDefinition | undefined
}

/** One attempt of a call, as a transport gets it. */
export interface Dispatch {
  /** Of the call. */
  invocationId: string
  scope: Scope
  runId: string
  deploymentId: string
  skillId: string
  skillVersion: string
  action: string
  arguments: Record<string, unknown>
  attempt: number
  /** The same with each attempt. */
  idempotencyKey: string
  transport: Transport
  /** By the name of the requirement. */
  credentials: Readonly<Record<string, { kind: string; value: string }>>
  /** Time is up, the lease is lost, or the run was canceled and nothing can be harmed by it. */
  signal: AbortSignal
  /** The run was canceled: what can be taken back may be. */
  canceled: AbortSignal
}

/** What a transport found out. */
export type DispatchOutcome = Exclude<Outcome, { kind: 'not_sent' }>

/** Carries actions out. One that throws leaves open what became of it. */
export interface TransportExecutor {
  execute(dispatch: Dispatch): Promise<DispatchOutcome>
}

/** How a model is asked: it has until `deadline` (epoch ms) and may answer with no more tokens than are reserved. */
export interface ModelCall {
  /** Fires at the deadline, and when nobody wants the answer any more. */
  signal: AbortSignal
  deadline: number
  reservation: Usage
}

export interface ModelReply {
  /** What the model proposes, as it said it; checked by the kernel. */
  outcome?: unknown
  /** Why there is no outcome to check: the model is told, and asked again. */
  malformed?: string
  /** As the provider counted; estimated where it is absent. Without `costMicros`, what the call cost is not known. */
  usage?: { inputTokens: number; outputTokens: number; costMicros?: number; estimated?: boolean }
  modelProvider?: string
  model?: string
}

/** Of one call; `cachedTokens` is the part of the input that the provider had before. */
export interface Tokens {
  inputTokens: number
  outputTokens: number
  cachedTokens?: number
}

/** Asks a model what to do next. It proposes, and does nothing. Contract: kernel-1.md 14.3. */
export interface ModelHost {
  /** @throws ModelFailure; anything else it throws is taken for a model that is down */
  propose(envelope: Envelope, call: ModelCall): Promise<ModelReply>
  /** Millionths of a dollar that so many tokens cost; undefined where that is not known before a call. */
  costOf?(tokens: Tokens): number | undefined
}

/** A model that gives no answer: it is down and asked again later, or it refuses this request for good. */
export class ModelFailure extends Error {
  readonly kind: 'unavailable' | 'rejected'
  /** For how long it asked to be left alone. */
  readonly retryAfterMs: number | undefined

  constructor(kind: 'unavailable' | 'rejected', message: string, retryAfterMs?: number) {
    super(message)
    this.name = 'ModelFailure'
    this.kind = kind
    this.retryAfterMs = retryAfterMs
  }
}
