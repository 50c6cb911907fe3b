import { budgetOf, claudeEffort } from './effort.ts'
import type { ChatRequest, Drop } from './form.ts'
import type { Json } from './json.ts'
import { canThink, forcesTool, type Target } from './target.ts'

/** How Claude is told to think as much as is asked for. @param maxTokens of the answer. Contract: gateway.md 5.3 */
export function claudeThinking(
  request: ChatRequest,
  target: Target,
  maxTokens: number | undefined,
  drop: Drop,
): { thinking?: Json; effort?: string } {
  if (request.effort === undefined || request.effort === 'none') return {}
  const { reasoning } = target
  const effort = claudeEffort(request.effort, target)
  const isOff = reasoning === 'none' || effort === 'none' || forcesTool(request) || !canThink(request)
  const budget = reasoning === 'budget' ? budgetOf(effort, maxTokens) : undefined
  if (isOff || (reasoning === 'budget' && budget === undefined)) {
    drop('reasoning_effort')
    return {}
  }
  if (budget !== undefined) return { thinking: { type: 'enabled', budget_tokens: budget } }
  return { thinking: { type: 'adaptive' }, effort }
}
