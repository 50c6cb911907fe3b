/**
 * A failure the caller can act on: a stable code for programs, a message for people, details for both.
 * Each service has one table from its codes to HTTP status; whatever is not a `CodedError` is a fault of ours.
 */
export class CodedError<Code extends string = string> extends Error {
  readonly code: Code
  readonly details: Record<string, unknown>

  constructor(code: Code, message: string, details: Record<string, unknown> = {}) {
    super(message)
    this.name = 'CodedError'
    this.code = code
    this.details = details
  }
}

/** The text of anything thrown. */
export const errorText = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Anything thrown, as an error. */
export const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(errorText(error)))
