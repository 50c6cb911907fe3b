import type { Change } from '../change.ts'
import type { Run } from '../model/run.ts'
import type { Turn } from '../model/turn.ts'
import { settleBudget } from '../runs/reservations.ts'
import { chargeOf } from './usage.ts'

/** The run with what a turn used, in place of what was reserved for it. Contract: kernel-1.md 5 */
export const settleTurn = (change: Change, run: Run, { id, usage }: Turn): Run =>
  settleBudget(change, run, { id, turnId: id, summary: 'A turn settled' }, chargeOf(usage))
