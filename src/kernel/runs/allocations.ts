import { canonicalJson } from '../../base/canonical-json.ts'
import { accountOf, accountOfObjective, spentOf, topUp, withBudgetState, type Account } from '../budgets.ts'
import type { Change } from '../change.ts'
import type { BudgetPolicy, BudgetTopUp } from '../model/budget.ts'
import type { Run } from '../model/run.ts'
import { isTerminal } from '../run-states.ts'
import { objectives } from '../store/objectives.ts'
import { lockRecord, saveRecord } from '../store/records.ts'
import { findRequestOfChild } from '../store/requests.ts'
import { runs, saveRun } from '../store/runs.ts'

/** What was set aside for a run of the budgets of its parent and its objective. Contract: kernel-1.md 5. */

interface Giver {
  account: Account
  allocation: BudgetPolicy
  /** Sets something else aside. */
  readonly set: (allocation: BudgetPolicy) => Promise<unknown>
}

async function lockGivers(change: Change, run: Run): Promise<{ parent?: Run; givers: Giver[] }> {
  const { tx, scope, now } = change
  const givers: Giver[] = []
  const parent = run.parentRunId === undefined ? undefined : await lockRecord(tx, runs, scope, run.parentRunId)
  const key = parent && (await allocationKey(change, parent, run))
  const ofParent = parent && key !== undefined && parent.budgetAllocations[key]
  if (ofParent) {
    givers.push({
      account: accountOf(parent),
      allocation: ofParent,
      set: async (allocation) => {
        const budgetAllocations = { ...parent.budgetAllocations, [key]: allocation }
        await saveRun(tx, withBudgetState({ ...parent, budgetAllocations }), now)
      },
    })
  }
  const objective = run.objectiveId === undefined ? undefined : await lockRecord(tx, objectives, scope, run.objectiveId)
  const ofObjective = objective?.budgetAllocations[run.id]
  if (objective && ofObjective) {
    givers.push({
      account: accountOfObjective(objective),
      allocation: ofObjective,
      set: async (allocation) => {
        const budgetAllocations = { ...objective.budgetAllocations, [run.id]: allocation }
        await saveRecord(tx, objectives, { ...objective, budgetAllocations }, now)
      },
    })
  }
  return { ...(parent && { parent }), givers }
}

/** The child of a request lives on what was set aside for the request. */
async function allocationKey({ tx, scope }: Change, parent: Run, run: Run): Promise<string | undefined> {
  if (parent.budgetAllocations[run.id]) return run.id
  return (await findRequestOfChild(tx, scope, run.id))?.id
}

/**
 * The run with more budget, which its parent and objective set aside; unsaved.
 * @throws invalid for a dimension without a limit; conflict when one of them has no room
 */
export async function raiseBudget(change: Change, run: Run, added: BudgetTopUp): Promise<Run> {
  const budget = topUp(run.budget, added, undefined)
  const { givers } = await lockGivers(change, run)
  for (const { account } of givers) topUp(run.budget, added, account)
  for (const { allocation, set } of givers) await set(topUp(allocation, added, undefined))
  return withBudgetState({ ...run, budget })
}

/**
 * Of `context.endings`: what a run did not use of its budget is free for others again. A giver that ended before has then
 * used less too.
 */
export async function settleAllocations(change: Change, run: Run): Promise<void> {
  if (!run.budget) return
  const spent = spentOf(accountOf(run))
  const { parent, givers } = await lockGivers(change, run)
  const owed = givers.filter(({ allocation }) => canonicalJson(allocation) !== canonicalJson(spent))
  for (const giver of owed) await giver.set(spent)
  if (owed.length === 0 || !parent || !isTerminal(parent.status)) return
  await settleAllocations(change, await lockRecord(change.tx, runs, change.scope, parent.id))
}
