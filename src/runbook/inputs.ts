import { didYouMean } from './hcl/diagnostics.ts'
import { textsIn } from './hcl/functions/conversion.ts'
import { encodeJson } from './hcl/json.ts'
import type { SourceRange } from './hcl/source.ts'
import { equals, type Value } from './hcl/values.ts'
import type { Workflow } from './model.ts'
import { convert, TypeMismatch } from './type-constraint.ts'

interface InputProblem {
  readonly code: 'RB602' | 'RB603' | 'RB604'
  readonly message: string
  /** Where the input is declared, or the workflow. */
  readonly range: SourceRange
  readonly hint?: string
}

/** The inputs of a run: converted, defaults filled in; all problems together. Contract: runbook.md 8. */
export function resolveInputs(
  workflow: Workflow,
  given: Readonly<Record<string, Value>>,
): { values: Record<string, Value>; problems: InputProblem[] } {
  const values: Record<string, Value> = {}
  const problems: InputProblem[] = []
  for (const name of Object.keys(given)) {
    if (workflow.inputs.has(name)) continue
    const message = `unknown input "${name}"`
    problems.push({ code: 'RB603', message, range: workflow.range, ...didYouMean(name, workflow.inputs.keys()) })
  }
  for (const { name, type, required, default: fallback, enum: allowed, range } of workflow.inputs.values()) {
    const value = Object.hasOwn(given, name) ? given[name] : undefined
    if (value === undefined) {
      const hint = `--input ${name}=...`
      if (required) problems.push({ code: 'RB602', message: `missing input "${name}"`, range, hint })
      values[name] = fallback ?? null
      continue
    }
    try {
      values[name] = convert(value, type)
    } catch (error) {
      if (!(error instanceof TypeMismatch)) throw error
      problems.push({ code: 'RB604', message: `input "${name}": ${error.message}`, range })
      continue
    }
    if (allowed && !allowed.some((item) => equals(item, values[name] ?? null))) {
      const list = allowed.map(encodeJson).join(', ')
      problems.push({ code: 'RB604', message: `input "${name}" is one of ${list}`, range })
    }
  }
  return { values, problems }
}

/** Secrets, and the texts in sensitive inputs, by the names under which a journal knows them. Contract: runbook.md 9. */
export function namedSecrets(
  workflow: Workflow,
  inputs: Readonly<Record<string, Value>>,
  secrets: Readonly<Record<string, string>>,
): Record<string, string> {
  const hidden = [...workflow.inputs.values()].flatMap(({ name, sensitive }) =>
    sensitive ? [...textsIn(inputs[name] ?? null)].map((text, i) => [`input.${name}.${i}`, text] as const) : [],
  )
  const named = Object.entries(secrets).map(([name, value]) => [`secret.${name}`, value] as const)
  return Object.fromEntries([...named, ...hidden])
}
