import { EFFORTS, type Effort } from './form.ts'
import type { Target } from './target.ts'

/** Tokens of thinking that an effort stands for. Contract: gateway.md 5.3. */
const BUDGETS: Readonly<Record<Effort, number>> = {
  none: 0,
  minimal: 1024,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 32_768,
  max: 65_536,
}

/** What a budget keeps free for the answer. */
const ANSWER_TOKENS = 1024

/** The effort, or the next lower one that a model knows; undefined where there is none. */
export function knownEffort(effort: Effort, known: readonly Effort[] | undefined): Effort | undefined {
  if (!known || known.includes(effort)) return effort
  return EFFORTS.slice(0, EFFORTS.indexOf(effort)).findLast((each) => known.includes(each))
}

/** No Claude knows less; a budget of tokens can say it. */
const ADAPTIVE: readonly Effort[] = ['low', 'medium', 'high', 'xhigh', 'max']

/** How much Claude is to think; `none` where it knows no effort that low. */
export const claudeEffort = (effort: Effort, { reasoning, efforts }: Target): Effort =>
  knownEffort(effort, efforts ?? (reasoning === 'adaptive' ? ADAPTIVE : undefined)) ?? 'none'

/** Tokens to think with, 1,024 below the output cap; undefined when that leaves no thinking. */
export function budgetOf(effort: Effort, maxTokens: number | undefined): number | undefined {
  const budget = Math.min(BUDGETS[effort], (maxTokens ?? Infinity) - ANSWER_TOKENS)
  return budget >= BUDGETS.minimal ? budget : undefined
}

/** The effort that a budget of tokens means: the nearest at or below. */
export const effortOf = (budget: number): Effort => EFFORTS.findLast((effort) => BUDGETS[effort] <= budget) ?? 'none'
