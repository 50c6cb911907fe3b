import type { KernelContext } from '../context.ts'
import type { ModelHost } from '../ports.ts'

/** Where a turn is, told as it gets there: T2, T3, the answer of the model, T4, T5. Contract: kernel-1.md 14.5 */
export type Step = 'claimed' | 'begun' | 'answered' | 'stored' | 'applied'

/** What turns of one scope are made with. */
export interface TurnParts {
  context: KernelContext
  model: ModelHost
  leaseMs: number
  turnsPerClaim: number
  random: () => number
  onStep?: (step: Step) => void
}
