import type { ActivityItem, Approval, Page, Run } from '../../client/kernel/kernel-types.ts'
import type { Context } from '../command.ts'
import { excerpt, type Row } from '../output.ts'
import { partyText } from './connect.ts'

/** How things of the kernel look in text form. */

export const runRow = (run: Run): Row => [
  run.id,
  run.status,
  partyText(run.owner),
  run.assignedAgentId !== undefined && run.assignedAgentId !== run.owner.id ? `by ${run.assignedAgentId}` : undefined,
  waitText(run),
  excerpt(run.goal),
]

/** What a run waits for, or why it does not go on. */
function waitText({
  status,
  wakeCondition,
  pauseReason,
  budgetAdmission,
  error,
  availableAt,
  queueEnteredAt,
}: Run): string | undefined {
  if (error) return `${error.code}: ${excerpt(error.message)}`
  if (pauseReason === 'budget' && budgetAdmission) {
    const { dimension, required, remaining } = budgetAdmission
    return `(budget: ${dimension} needs ${required}, ${remaining} is left)`
  }
  if (pauseReason !== undefined) return `(${pauseReason})`
  if (status === 'queued' && availableAt > queueEnteredAt) return `not before ${availableAt}`
  if (!wakeCondition) return undefined
  const { type, reference, wakeAt } = wakeCondition
  return `for ${[type, reference ?? wakeAt].filter((part) => part !== undefined).join(' ')}`
}

export const approvalRow = (approval: Approval): Row => [
  approval.id,
  approval.status,
  approval.risk,
  `until ${approval.expiresAt}`,
  excerpt(approval.summary),
]

/** With why a proposal was refused, where details were asked for. */
export const eventRow = ({ createdAt, eventType, summary, actor, payload }: ActivityItem): Row => [
  createdAt,
  eventType,
  partyText(actor),
  excerpt(summary),
  typeof payload?.['refused'] === 'string' ? `(refused: ${excerpt(payload['refused'], 500)})` : undefined,
]

/** Shows a page, and how to go on. */
export async function showPage<Item>(
  { output }: Context,
  { items, nextCursor }: Page<Item>,
  row: (item: Item) => Row,
): Promise<void> {
  await output.list(items, items, row)
  if (nextCursor !== undefined) output.note(`more: --cursor ${nextCursor}`)
}
