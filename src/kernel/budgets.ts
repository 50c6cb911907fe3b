import { toTimestamp } from '../base/clock.ts'
import { conflict, invalid } from './errors.ts'
import type { BudgetPolicy, BudgetState, BudgetTopUp, Dimension, Reservation, Usage } from './model/budget.ts'
import type { Objective } from './model/objective.ts'
import type { Run } from './model/run.ts'

/** What may be used, what is, and what is kept free for work under way. Contract: kernel-1.md 5. */

/** What counts against each limit. */
const SPENT: Record<Dimension, (usage: Usage) => number> = {
  maxAttempts: ({ attempts = 0 }) => attempts,
  maxTurns: ({ turns = 0 }) => turns,
  maxInputTokens: ({ inputTokens = 0 }) => inputTokens,
  maxOutputTokens: ({ outputTokens = 0 }) => outputTokens,
  maxTotalTokens: ({ inputTokens = 0, outputTokens = 0 }) => inputTokens + outputTokens,
  maxCostMicros: ({ costMicros = 0 }) => costMicros,
  maxDurationMs: ({ durationMs = 0 }) => durationMs,
  maxActions: ({ actions = 0 }) => actions,
}

const isDimension = (name: string): name is Dimension => Object.hasOwn(SPENT, name)
const DIMENSIONS = Object.keys(SPENT).filter(isDimension)

/** The dimensions that a budget bounds. */
export const boundedBy = (budget: BudgetPolicy): { dimension: Dimension; limit: number }[] =>
  DIMENSIONS.flatMap((dimension) => {
    const limit = budget[dimension]
    return limit === undefined ? [] : [{ dimension, limit }]
  })

/** A budget that goes beyond none of these; undefined where nothing is bounded. */
export function narrowed(
  budget: BudgetPolicy | undefined,
  ...ceilings: readonly (BudgetPolicy | undefined)[]
): BudgetPolicy | undefined {
  const narrow: BudgetPolicy = { ...budget }
  for (const { dimension, limit } of ceilings.flatMap((ceiling) => boundedBy(ceiling ?? {}))) {
    narrow[dimension] = Math.min(narrow[dimension] ?? limit, limit)
  }
  return Object.keys(narrow).length === 0 ? undefined : narrow
}

/** What both used. */
export function addUsage(one: Usage, other: Usage): Usage {
  const sum: Record<string, number> = { ...one }
  for (const [name, value] of Object.entries(other)) sum[name] = (sum[name] ?? 0) + value
  return sum
}

/** What has a budget: a run, a project, an objective. */
export interface Account {
  budget?: BudgetPolicy
  usage: Usage
  reservations: Readonly<Record<string, Reservation>>
  /** What children were given. */
  allocations: Readonly<Record<string, BudgetPolicy>>
  /** What something cost is not known: of a limit in dollars nothing is left. */
  unpriced?: boolean
}

export const accountOf = ({ budget, budgetUsage, budgetReservations, budgetAllocations, unpriced }: Run): Account => ({
  ...(budget && { budget }),
  ...(unpriced && { unpriced }),
  usage: budgetUsage,
  reservations: budgetReservations,
  allocations: budgetAllocations,
})

export const accountOfObjective = ({ budget, budgetAllocations }: Objective): Account => ({
  ...(budget && { budget }),
  usage: {},
  reservations: {},
  allocations: budgetAllocations,
})

/** Committed, reserved and given to children. */
function taken({ budget, usage, reservations, allocations, unpriced }: Account, dimension: Dimension): number {
  const committed = SPENT[dimension](usage)
  const reserved = Object.values(reservations).reduce((sum, each) => sum + SPENT[dimension](each.usage), 0)
  const given = Object.values(allocations).reduce((sum, allocation) => sum + (allocation[dimension] ?? 0), 0)
  const known = committed + reserved + given
  return unpriced && dimension === 'maxCostMicros' ? Math.max(known, budget?.maxCostMicros ?? 0) : known
}

/** What may still be used; Infinity where there is no bound. */
export const remainingIn = (account: Account, dimension: Dimension): number =>
  (account.budget?.[dimension] ?? Infinity) - taken(account, dimension)

/** What of the bounded dimensions is used, kept free and given on: all that a budget cost when its holder is at its end. */
export const spentOf = (account: Account): BudgetPolicy =>
  Object.fromEntries(boundedBy(account.budget ?? {}).map(({ dimension }) => [dimension, taken(account, dimension)]))

/** A dimension in which a budget does not reach. */
export interface Shortage {
  dimension: Dimension
  required: number
  remaining: number
}

/** Why this much more cannot be afforded; undefined when it can, also exactly at the limit. */
export function shortageOf(account: Account, wanted: Usage): Shortage | undefined {
  for (const { dimension, limit } of boundedBy(account.budget ?? {})) {
    const required = SPENT[dimension](wanted)
    const remaining = limit - taken(account, dimension)
    if (required > remaining) return { dimension, required, remaining: Math.max(0, remaining) }
  }
  return undefined
}

/** With this kept free under the id of its turn or call; the same id again replaces what it had. */
export const reserve = (
  reservations: Readonly<Record<string, Reservation>>,
  id: string,
  usage: Usage,
  now: number,
): Record<string, Reservation> => ({ ...reservations, [id]: { id, usage, createdAt: toTimestamp(now) } })

/** What was kept free under this id is free again, and what was really used is committed. */
export function settle(account: Account, id: string, used: Usage): Pick<Account, 'usage' | 'reservations'> {
  const { [id]: _settled, ...reservations } = account.reservations
  return { usage: addUsage(account.usage, used), reservations }
}

const DEFAULT_WARNING_PERMILLE = 800

/** How far a budget is used: a dimension at its limit exhausts it, one at the warning line warns. */
export const budgetStateOf = (account: Account): BudgetState | undefined =>
  account.budget && (budgetAlarm(account)?.state ?? 'active')

/** The first dimension at its limit, else the last at the warning line. */
export function budgetAlarm(
  account: Account,
): { state: 'warning' | 'exhausted'; dimension: Dimension; limit: number; used: number } | undefined {
  const { warningPermille = 0, ...budget } = account.budget ?? {}
  const permille = warningPermille > 0 ? warningPermille : DEFAULT_WARNING_PERMILLE
  let alarm: ReturnType<typeof budgetAlarm>
  for (const { dimension, limit } of boundedBy(budget)) {
    const used = taken(account, dimension)
    if (used >= limit) return { state: 'exhausted', dimension, limit, used }
    if (used * 1000 >= limit * permille) alarm = { state: 'warning', dimension, limit, used }
  }
  return alarm
}

/** Whether a run may be claimed once more; at its limit a claim pauses it. */
export const hasAttempt = ({ budget, budgetUsage: { attempts = 0 } }: Run): boolean =>
  budget?.maxAttempts === undefined || attempts < budget.maxAttempts

/** The run with how far its budget is used. */
export function withBudgetState(run: Run): Run {
  const budgetState = budgetStateOf(accountOf(run))
  return budgetState ? { ...run, budgetState } : run
}

/**
 * What a child gets: what it asks for, and the remainder in dimensions it leaves open that its parent bounds.
 * @throws invalid when the parent has a budget and the child asks for none; conflict when there is not room enough
 */
export function allocate(parent: Account, asked: BudgetPolicy | undefined): BudgetPolicy | undefined {
  const bounded = boundedBy(parent.budget ?? {})
  if (bounded.length === 0) return asked
  if (!asked || boundedBy(asked).length === 0) throw invalid('budget is required: what the run belongs to has one')
  const given: BudgetPolicy = { ...asked }
  for (const { dimension, limit } of bounded) {
    const remaining = limit - taken(parent, dimension)
    const amount = given[dimension] ?? remaining
    if (amount > remaining || amount < 1) throw noRoom(dimension, amount, remaining)
    given[dimension] = amount
  }
  return given
}

const noRoom = (dimension: Dimension, amount: number, remaining: number): Error =>
  conflict(`budget has no room: ${dimension} needs ${Math.max(1, amount)}, ${Math.max(0, remaining)} is left`)

/**
 * A budget raised by these amounts.
 * @param parent where the budget was allocated from: its room for the amounts is checked
 * @throws invalid for a dimension without a limit; conflict when the parent has no room
 */
export function topUp(budget: BudgetPolicy | undefined, added: BudgetTopUp, parent: Account | undefined): BudgetPolicy {
  const raised: BudgetPolicy = { ...budget }
  for (const { dimension, limit: amount } of boundedBy(added)) {
    const limit = budget?.[dimension]
    if (limit === undefined) throw invalid(`budgetTopUp.${dimension}: the budget does not bound it`)
    const room = (parent?.budget?.[dimension] ?? Infinity) - (parent ? taken(parent, dimension) : 0)
    if (amount > room) throw noRoom(dimension, amount, room)
    raised[dimension] = limit + amount
  }
  return raised
}

/** @throws conflict when a new budget is below what is used and given to children already, naming the dimension */
export function checkCovers(account: Account): void {
  const isAllocated = Object.keys(account.allocations).length > 0
  if (!account.budget && isAllocated) throw conflict('budget cannot be removed: parts of it are allocated')
  for (const { dimension, limit } of boundedBy(account.budget ?? {})) {
    const used = taken(account, dimension)
    if (used > limit) throw conflict(`budget is below what is allocated: ${dimension} ${limit} of ${used}`)
  }
}
