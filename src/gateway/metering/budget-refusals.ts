import { formatUsd } from '../cost/money.ts'
import { GatewayError } from '../errors.ts'
import type { Budget } from '../model.ts'
import type { Spender } from '../store/aggregates.ts'
import type { BudgetWindow } from '../store/budgets.ts'

/** Where a budget does not let calls pass whose price is unknown. @throws GatewayError 403 `price_unknown` */
export function refuseUnknown(demands: readonly { spender: Spender; budget: Budget }[]): void {
  const strict = demands.find(({ budget }) => budget.unknown_price === 'deny')
  if (!strict) return
  throw new GatewayError(
    'price_unknown',
    `the price of this model is not known, and the budget of the ${strict.spender.type} denies such calls: gateway.prices in mem.yaml can name one`,
  )
}

/** When to come again where calls under way hold the money: nobody knows how long they last. */
const HELD_MS = 1000

/**
 * A 429 that says when there is money again.
 * @param amount what was to be set aside, nano-dollars
 * @param isHeld there is so much, but set aside for calls under way, most of which cost less in the end
 */
export function exceeded(
  { type }: Spender,
  { period, endsAt }: BudgetWindow,
  { amount, isHeld }: { amount: bigint; isHeld: boolean },
  now: number,
): GatewayError {
  const anew = period === 'total' ? 'ask an admin for more' : `it begins anew at ${new Date(endsAt).toISOString()}`
  const until = isHeld ? 'calls under way hold the rest of it, try again when some have ended' : anew
  const most = `this call, which may cost up to ${formatUsd(amount)} USD (a smaller max_tokens makes it less)`
  const message = `the budget of the ${type} does not suffice for ${most}: ${until}`
  return new GatewayError('budget_exceeded', message, { retryAfterMs: isHeld ? HELD_MS : endsAt - now })
}
