import { CodedError } from '../../base/errors.ts'
import type { SourceRange } from './source.ts'

/** An expression that can't be evaluated, with the place. `message` doesn't hold the place; `located` does. */
export class EvaluationError extends CodedError<'expression_error' | 'limit_exceeded'> {
  readonly range: SourceRange
  readonly hint: string | undefined

  constructor(message: string, range: SourceRange, hint?: string, code: EvaluationError['code'] = 'expression_error') {
    super(code, message)
    this.range = range
    this.hint = hint
  }

  get located(): string {
    return `${this.range.toString()}: ${this.message}${this.hint === undefined ? '' : ` (${this.hint})`}`
  }
}

/** A bound of runbook.md 3.3 was reached; the evaluator adds the place. */
export class LimitError extends Error {}

/** A function refuses an argument; the evaluator adds the place. */
export class FunctionError extends Error {
  readonly argument: number | undefined

  constructor(message: string, argument?: number) {
    super(message)
    this.argument = argument
  }
}

/** In a plan or dry run: the value depends on a node that didn't run. Neither `try` nor `can` hides it. */
export class KnownAfterRun extends Error {}
