import type { Logger } from 'pino'
import { canonicalJson } from '../base/canonical-json.ts'
import { isHarmless, RISKS, type Risk } from './model/action.ts'
import type { Party } from './model/fields.ts'
import { APPROVAL_TTL_MS, OPERATOR, policyResult, type PolicyDecision } from './model/policy.ts'
import type { ActionPolicy, ProposalValidator, ProposedAction } from './ports.ts'

/** Whether an action may be done, needs approval, or is denied. Contract: kernel-1.md 13. */

const STRICTNESS = { allow: 0, require_approval: 1, deny: 2 } as const

export const exceeds = (risk: Risk, bound: Risk): boolean => RISKS.indexOf(risk) > RISKS.indexOf(bound)

/** What bounds an action, whoever asks: binding, deployment, definition, and for members of teams role and team. */
export interface Bounds {
  enabled: boolean
  /** Why this deployment may not do it, whatever the binding says. */
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

/** Reading is allowed; all else is for the operator to approve, as is what a definition wants approved. */
export const defaultPolicy = (approver: Party = OPERATOR): ActionPolicy => ({
  evaluate: ({ risk, sideEffect }) => ({
    outcome: risk === 'read' && isHarmless(sideEffect) ? 'allow' : 'require_approval',
    eligibleApprovers: [approver],
    ttlMs: APPROVAL_TTL_MS,
  }),
})

/** The strictest of all layers. Whom to ask, and for how long, the configured policy says, whoever wants it asked. */
export async function evaluatePolicy(proposal: ProposedAction, { policy, ...rules }: Rules): Promise<PolicyDecision> {
  const { bounds } = rules
  const denial = await findDenial(proposal, rules)
  if (denial !== undefined) return denied(denial)
  const asked = askingResult(proposal, bounds)
  const configured = await Promise.resolve()
    .then(async () => policyResult.parse(await policy.evaluate(proposal)))
    .catch((error: unknown) => {
      rules.log.error({ err: error, runId: proposal.run.id }, 'the action policy failed')
      return denied('the action policy failed')
    })
  const isStricter = STRICTNESS[configured.outcome] >= STRICTNESS[asked.outcome]
  return isStricter ? configured : { ...configured, ...asked }
}

const denied = (reason: string): PolicyDecision => policyResult.parse({ outcome: 'deny', reason })

const askingResult = (
  { risk }: ProposedAction,
  { requireApprovalAt }: Bounds,
): Pick<PolicyDecision, 'outcome' | 'reason'> =>
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
    const value = canonicalJson(proposal.arguments[field])
    const allowed = restriction.enum ?? ('const' in restriction ? [restriction.const] : undefined)
    if (allowed && !allowed.some((one) => canonicalJson(one) === value))
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
      const denial: unknown = await validate(proposal)
      if (denial !== undefined) return typeof denial === 'string' ? denial : 'a proposal validator denies it'
    } catch (error) {
      log.error({ err: error, runId: proposal.run.id }, 'a proposal validator failed')
      return 'a proposal validator failed'
    }
  }
  return undefined
}
