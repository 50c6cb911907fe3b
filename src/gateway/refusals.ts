import { RestError } from '../platform/errors.ts'

/** The codes that management routes have beside those of the platform. Contract: gateway.md 3.5. */
const CODES = { secret_required: 422, address_refused: 422, invalid_alias: 422 } as const

/** A refusal on a management route. */
export class ManagementError extends RestError<keyof typeof CODES> {
  constructor(code: keyof typeof CODES, message: string, details: Record<string, unknown>) {
    super(CODES[code], code, message, details)
  }
}

/** A 422: a saved secret must not go to an address that whoever knows it did not name. */
export const secretRequired = (fields: readonly string[]): ManagementError =>
  new ManagementError('secret_required', `the address changes: send ${fields.join(', ')} anew`, { fields })

/** A 422: nothing may be called there. */
export const addressRefused = (host: string): ManagementError =>
  new ManagementError(
    'address_refused',
    `${host} is an address that may not be called; gateway.allowed_hosts can allow private ones`,
    { host },
  )
