import { CodedError } from '../../base/errors.ts'
import type { Expression } from './ast.ts'
import type { SourceRange } from './source.ts'

/** An expression that can't be evaluated, with the place. `message` doesn't hold the place; `located` does. */
export class EvaluationError extends CodedError<'expression_error' | 'limit_exceeded'> {
  readonly range: SourceRange
  private readonly giveHint: string | (() => string | undefined) | undefined

  /** A hint that takes work is a function: `try` in a loop throws many errors that nobody reads. */
  constructor(
    message: string,
    range: SourceRange,
    hint?: string | (() => string | undefined),
    code: EvaluationError['code'] = 'expression_error',
  ) {
    super(code, message)
    this.range = range
    this.giveHint = hint
  }

  get hint(): string | undefined {
    return typeof this.giveHint === 'function' ? this.giveHint() : this.giveHint
  }

  get located(): string {
    const { range, message, hint } = this
    return `${range.toString()}: ${message}${hint === undefined ? '' : ` (${hint})`}`
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

/** Runs, and turns the errors of operators and functions into errors at `range`, or at the range of the named argument. */
export function located<T>(range: SourceRange, run: () => T, parts: readonly Expression[] = []): T {
  try {
    return run()
  } catch (error) {
    if (error instanceof LimitError) throw new EvaluationError(error.message, range, undefined, 'limit_exceeded')
    if (error instanceof RangeError) throw new EvaluationError('value too large', range, undefined, 'limit_exceeded')
    if (!(error instanceof FunctionError)) throw error
    const part = error.argument === undefined ? undefined : parts[error.argument]
    throw new EvaluationError(error.message, part?.range ?? range)
  }
}
