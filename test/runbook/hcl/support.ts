import type { Diagnostic } from '../../../src/runbook/hcl/diagnostics.ts'
import { evaluate } from '../../../src/runbook/hcl/evaluate.ts'
import { EvaluationError } from '../../../src/runbook/hcl/errors.ts'
import { parseExpression, parseFile } from '../../../src/runbook/hcl/parser-body.ts'
import { constantScope, type Scope } from '../../../src/runbook/hcl/scope.ts'
import type { Value } from '../../../src/runbook/hcl/values.ts'

/** The value as plain data, for comparison. */
export const plain = (value: Value): unknown => JSON.parse(JSON.stringify(value))

export const valueOf = (text: string, variables: Record<string, Value> = {}): Value =>
  evaluate(parseExpression(text), constantScope(variables))

export const resultOf = (text: string, variables: Record<string, Value> = {}): unknown =>
  plain(valueOf(text, variables))

/** The error of evaluating the text. */
export function failureOf(
  text: string,
  variables: Record<string, Value> = {},
  extra: Partial<Scope> = {},
): EvaluationError {
  try {
    evaluate(parseExpression(text), { ...constantScope(variables), ...extra })
  } catch (error) {
    if (error instanceof EvaluationError) return error
    throw error
  }
  throw new Error(`no error: ${text}`)
}

/** `code line:column` of every diagnostic. */
export const codesOf = (text: string | Uint8Array): string[] => parseFile(text, 'x.hcl').diagnostics.map(short)

export const short = ({ code, range }: Diagnostic): string => `${code} ${range.start.line}:${range.start.column}`

/** The value of attribute `name` of a file without faults. */
export function attributeOf(text: string, name: string, variables: Record<string, Value> = {}): unknown {
  const { body, diagnostics } = parseFile(text, 'x.hcl')
  if (diagnostics.length > 0) throw new Error(diagnostics.map((found) => `${short(found)} ${found.message}`).join('\n'))
  const attribute = body.attributes.get(name)
  if (!attribute) throw new Error(`no attribute ${name}`)
  return plain(evaluate(attribute.value, constantScope(variables)))
}
