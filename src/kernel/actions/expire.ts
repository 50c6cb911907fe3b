import type { KernelContext } from '../context.ts'
import { findExpired } from '../store/approvals.ts'
import { endOverdue } from './decide.ts'

const AT_ONCE = 100

/** Ends approvals of all scopes that nobody decided in time, 100 at most; gives the number of those it looked at. */
export async function endOverdueApprovals(context: KernelContext): Promise<number> {
  const overdue = await findExpired(context.store.database, context.store.now(), AT_ONCE)
  for (const { scope, id } of overdue) await endOverdue(context, scope, id)
  return overdue.length
}
