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

/** A 422: nothing may be called there, or only once the server's configuration allows it. */
export const addressRefused = (host: string, { mayBeAllowed }: { mayBeAllowed: boolean }): ManagementError =>
  new ManagementError(
    'address_refused',
    mayBeAllowed
      ? `${host} is a private address: whoever runs the server can allow it in gateway.allowed_hosts`
      : `${host} is where a cloud keeps its metadata, or link-local: it is never called`,
    { host },
  )
