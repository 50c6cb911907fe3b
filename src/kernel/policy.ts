import type { Logger } from 'pino'
import { RISKS, type Risk } from './model/action.ts'
import type { Party } from './model/fields.ts'
import type { ActionPolicy, PolicyResult, ProposalValidator, ProposedAction } from './ports.ts'

/** Whether an action may be done, needs approval, or is denied. Contract: kernel-1.md 13. */

const STRICTNESS = { allow: 0, require_approval: 1, deny: 2 } as const
const APPROVAL_TTL_MS = 24 * 3_600_000
export const OPERATOR: Party = { type: 'role', id: 'operator' }

export const exceeds = (risk: Risk, bound: Risk): boolean => RISKS.indexOf(risk) > RISKS.indexOf(bound)

/** What bounds an action, whoever asks: binding, deployment, definition, and for members of teams role and team. */
export interface Bounds {
  enabled: boolean
  /** Why none of the skill's actions may be done by this deployment. */
  withheld?: string
  allowedActions: readonly string[]
  /** Each that there is: none may be exceeded. */
  maximumRisks: readonly { of: string; risk: Risk }[]
  argumentRestrictions: Readonly<Record<string, { const?: unknown; enum?: readonly unknown[] }>>
  /** From this risk on people are asked. */
  requireApprovalAt?: Risk
}

export interface Rules {
  bounds: Bounds
  /** Of what fails: to the run it is a denial. */
  log: Pick<Logger, 'error'>
  validators: readonly ProposalValidator[]
  policy: ActionPolicy
}

/** Reading is allowed; all else is for the operator to approve. */
export const defaultPolicy = (approver: Party = OPERATOR): ActionPolicy => ({
  evaluate: ({ risk, sideEffect }) =>
    risk === 'read' && (sideEffect === 'none' || sideEffect === 'read')
      ? { outcome: 'allow' }
      : { outcome: 'require_approval', eligibleApprovers: [approver], ttlMs: APPROVAL_TTL_MS },
})

/** A decision, complete: what asks for approval says whom, and for how long. */
export interface PolicyDecision extends PolicyResult {
  eligibleApprovers: Party[]
  ttlMs: number
  timeoutDecision: 'expire' | 'approve'
}

/** The strictest of all layers. */
export async function evaluatePolicy(proposal: ProposedAction, { policy, ...rules }: Rules): Promise<PolicyDecision> {
  const { bounds } = rules
  const denial = await findDenial(proposal, rules)
  if (denial !== undefined) return complete({ outcome: 'deny', reason: denial })
  const asked = askingResult(proposal, bounds)
  const configured = await Promise.resolve()
    .then(() => policy.evaluate(proposal))
    .catch((error: unknown): PolicyResult => {
      rules.log.error({ err: error, runId: proposal.run.id }, 'the action policy failed')
      return { outcome: 'deny', reason: 'the action policy failed' }
    })
  const isStricter = STRICTNESS[configured.outcome] >= STRICTNESS[asked.outcome]
  return complete(isStricter ? configured : asked)
}

const complete = (result: PolicyResult): PolicyDecision => ({
  ...result,
  eligibleApprovers: result.eligibleApprovers?.length ? result.eligibleApprovers : [OPERATOR],
  ttlMs: result.ttlMs ?? APPROVAL_TTL_MS,
  timeoutDecision: result.timeoutDecision ?? 'expire',
})

const askingResult = ({ risk }: ProposedAction, { requireApprovalAt }: Bounds): PolicyResult =>
  requireApprovalAt !== undefined && !exceeds(requireApprovalAt, risk)
    ? { outcome: 'require_approval', reason: `risk ${risk} needs approval` }
    : { outcome: 'allow' }

/** Why the bounds or a validator deny an action: asked again right before it is done. */
export const findDenial = async (
  proposal: ProposedAction,
  { bounds, ...rules }: Omit<Rules, 'policy'>,
): Promise<string | undefined> => boundsDenial(proposal, bounds) ?? (await validatorDenial(proposal, rules))

function boundsDenial(proposal: ProposedAction, bounds: Bounds): string | undefined {
  const { action, risk } = proposal
  if (!bounds.enabled) return 'the skill binding is disabled'
  if (bounds.withheld !== undefined) return bounds.withheld
  if (!bounds.allowedActions.includes(action)) return `the binding does not allow ${action}`
  const exceeded = bounds.maximumRisks.find((maximum) => exceeds(risk, maximum.risk))
  if (exceeded) return `risk ${risk} is above the ${exceeded.risk} of the ${exceeded.of}`
  for (const [field, restriction] of Object.entries(bounds.argumentRestrictions)) {
    const value = JSON.stringify(proposal.arguments[field])
    const allowed = restriction.enum ?? ('const' in restriction ? [restriction.const] : undefined)
    if (allowed && !allowed.some((one) => JSON.stringify(one) === value))
      return `argument ${field} is not an allowed value`
  }
  return undefined
}

async function validatorDenial(
  proposal: ProposedAction,
  { validators, log }: Pick<Rules, 'validators' | 'log'>,
): Promise<string | undefined> {
  for (const validate of validators) {
    try {
      const denial = await validate(proposal)
      if (denial !== undefined) return denial
    } catch (error) {
      log.error({ err: error, runId: proposal.run.id }, 'a proposal validator failed')
      return 'a proposal validator failed'
    }
  }
  return undefined
}
