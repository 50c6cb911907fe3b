import type { Risk, SideEffect } from './model/action.ts'
import type { BudgetState } from './model/budget.ts'
import type { Party, Scope } from './model/fields.ts'
import type { Run } from './model/run.ts'

/** What the kernel needs of those who embed it. Contract: kernel-1.md 13. */

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

export interface PolicyResult {
  outcome: 'allow' | 'require_approval' | 'deny'
  reason?: string
  eligibleApprovers?: Party[]
  ttlMs?: number
  timeoutDecision?: 'expire' | 'approve'
  destinations?: { endpointId: string }[]
}

/** Says what needs approval. One that throws denies. */
export interface ActionPolicy {
  evaluate(proposal: ProposedAction): PolicyResult | Promise<PolicyResult>
}

/** A reason to deny, or undefined. One that throws denies. */
export type ProposalValidator = (proposal: ProposedAction) => string | undefined | Promise<string | undefined>
