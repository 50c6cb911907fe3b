import { CodedError, errorText } from '../base/errors.ts'
import { KernelError } from '../kernel/errors.ts'
import { MEMORY_ERRORS, MemoryError } from '../memory/errors.ts'

/** What the console itself refuses, beside the errors of the service. Contract: memory.md 14. */
const CONSOLE_ERRORS = { signed_out: 401, foreign_host: 401, forbidden: 403, not_found: 404 } as const

export class ConsoleError extends CodedError<keyof typeof CONSOLE_ERRORS> {}

/** A refusal as shown: the REST status, the code and the text; a fault's own text never leaves. */
export interface Refusal {
  status: number
  code: string
  message: string
  details: Record<string, unknown>
}

/** What is shown of an error; of one that nobody foresaw, only where to look. */
export function toRefusal(error: unknown): Refusal {
  if (error instanceof ConsoleError) return refusalOf(CONSOLE_ERRORS[error.code], error)
  if (error instanceof KernelError) return refusalOf(error.status, error)
  if (error instanceof MemoryError) return refusalOf(MEMORY_ERRORS[error.code], error)
  const status: unknown = error instanceof Error ? Reflect.get(error, 'statusCode') : undefined
  if (typeof status === 'number' && status >= 400 && status < 500) {
    return { status: 400, code: 'invalid_input', message: errorText(error), details: {} }
  }
  const message = 'The server met a fault. It is in the log under this request id.'
  return { status: 500, code: 'internal_error', message, details: {} }
}

const refusalOf = (status: number, { code, message, details }: CodedError): Refusal => ({
  status,
  code,
  message,
  details,
})
