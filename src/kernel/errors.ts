import { CodedError } from '../base/errors.ts'

/** What the kernel refuses with, by code. Contract: kernel-1.md 1.4. */
const STATUS = {
  invalid: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  too_large: 413,
  unprocessable: 422,
  approval_required: 428,
  not_configured: 501,
  remote_failed: 502,
  unavailable: 503,
} as const

export type KernelErrorCode = keyof typeof STATUS

/** A refusal; its text goes to the caller as it is. Whatever else is thrown is a fault of ours. */
export class KernelError extends CodedError<KernelErrorCode> {
  get status(): number {
    return STATUS[this.code]
  }
}

export const invalid = (message: string): KernelError => new KernelError('invalid', message)
export const forbidden = (message: string): KernelError => new KernelError('forbidden', message)
export const conflict = (message: string): KernelError => new KernelError('conflict', message)
export const notFound = (what: string, id: string): KernelError =>
  new KernelError('not_found', `${what} ${id} was not found`)

/** @throws conflict when it is another revision. Contract: kernel-1.md 1.6 */
export function expectRevision(expected: number, current: number): void {
  if (expected !== current) throw conflict(`revision conflict: expected ${expected}, current ${current}`)
}
