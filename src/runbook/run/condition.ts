import { constantText, type Expression, type Template, type TemplatePart } from '../hcl/ast.ts'
import { evaluate, evaluateText } from '../hcl/evaluate.ts'
import { pathPieces } from '../hcl/path-template.ts'
import type { Scope } from '../hcl/scope.ts'
import { isMap, itemsOf, toText, type Value } from '../hcl/values.ts'

/** The value of `when`, `if.condition` or `filter.condition`. Contract: runbook.md 3.4, text conditions. */
export function evaluateCondition(expression: Expression, scope: Scope): boolean {
  const comparison = expression.kind === 'template' ? splitComparison(expression) : undefined
  if (!comparison) return isTrue(evaluate(expression, scope))
  const { left, right, equal } = comparison
  const text = (parts: readonly TemplatePart[]): string => evaluateText(parts, scope, expression.range).trim()
  return (text(left) === text(right)) === equal
}

/** The branch that a constant condition of an edge names; `true` and `false` stand for `then` and `else`. */
export function branchKey(condition: Expression): string | undefined {
  const isPlain = condition.kind === 'literal' && typeof condition.value !== 'object'
  const key = isPlain ? String(condition.value) : constantText(condition)
  return key === 'true' ? 'then' : key === 'false' ? 'else' : key
}

/** True unless empty, `false`, `0` or null. */
export function isTrue(value: Value): boolean {
  if (value === null || value === false) return false
  const items = isMap(value) ? Object.keys(value) : itemsOf(value)
  if (items) return items.length > 0
  const text = toText(value)
  return text === undefined || !['', 'false', '0'].includes(text.trim())
}

interface Comparison {
  left: TemplatePart[]
  right: TemplatePart[]
  equal: boolean
}

/** Splits at the first `==` or `!=` that stands in text outside of templates. */
function splitComparison({ parts }: Template): Comparison | undefined {
  for (const [i, part] of parts.entries()) {
    if (part.kind !== 'text') continue
    const at = operatorIndex(part)
    if (at < 0) continue
    const before = { ...part, value: part.value.slice(0, at) }
    const after = { ...part, value: part.value.slice(at + 2) }
    return {
      left: [...parts.slice(0, i), before],
      right: [after, ...parts.slice(i + 1)],
      equal: part.value[at] === '=',
    }
  }
  return undefined
}

/** The index of the operator in a text whose `{{ paths }}` don't count. */
function operatorIndex(part: Extract<TemplatePart, { kind: 'text' }>): number {
  if (!pathPieces(part).some((piece) => piece.kind === 'text' && /[=!]=/.test(piece.value))) return -1
  const blanked = part.value.replace(/\{\{[^{}]*\}\}/g, (path) => ' '.repeat(path.length))
  return blanked.search(/[=!]=/)
}
