import { estimateCeiling } from '../cost/pricing.ts'
import type { GatewayError } from '../errors.ts'
import { choicesAsked } from '../exchange/estimate.ts'
import { outputCap } from '../exchange/output-cap.ts'
import type { Budgets, Reservation } from '../metering/metering.ts'
import type { Candidate } from '../routing/candidate.ts'
import type { GatewayCaller } from '../state/organization-state.ts'
import type { CallOrder } from './call.ts'

/**
 * Sets aside what an attempt may cost; undefined where no budget applies. Contract: gateway.md 7.3.
 * @throws GatewayError 429 `budget_exceeded`, 403 `price_unknown`
 */
export function reserveFor(
  budgets: Budgets,
  { visit, request, inputTokens }: CallOrder,
  candidate: Candidate,
): Reservation | undefined | Promise<Reservation> {
  if (!hasBudget(visit.caller)) return undefined
  const cap = request.surface === 'embeddings' ? 0 : outputCap(request, candidate)
  return budgets.reserve(visit.caller, estimateCeiling(candidate.row, inputTokens, cap, choicesAsked(request)))
}

const hasBudget = ({ key, state: { settings } }: GatewayCaller): boolean =>
  settings.cost_tracking && (key?.budget !== undefined || settings.budget !== null || settings.user_budget !== null)

/** No money could be set aside: another candidate may cost less. */
export const isOfMoney = ({ code }: GatewayError): boolean => code === 'budget_exceeded' || code === 'price_unknown'
