import type { Caller } from '../platform/caller.ts'
import { PlatformError } from '../platform/errors.ts'
import type { Scope } from './model.ts'

/** Who manages, and what the audit tells of the request. */
export interface Actor extends Caller {
  requestId: string
  address: string
  userAgent: string | undefined
}

/** A record that is shared, or private to a user. */
interface Owned {
  user_id: number | null
}

export const scopeOf = ({ user_id }: Owned): Scope => (user_id === null ? 'organization' : 'user')

export const isAdmin = ({ user }: Caller): boolean => user.role === 'admin'

const forbidden = (message: string, permission: string): PlatformError =>
  new PlatformError('forbidden', message, { permission })

/** Whose a new record of this scope is; null: shared. @throws forbidden 403 when a member would share it. Contract: gateway.md 2.1 */
export function ownerFor(caller: Caller, scope: Scope = 'organization'): number | null {
  if (scope === 'user') return caller.user.id
  if (isAdmin(caller)) return null
  throw forbidden('what all share is kept by admins; scope user makes it your own', 'admin')
}

/** Whether a record is there for a user: private ones of others are not, for admins too. Contract: gateway.md 2. */
export const isVisible = (caller: Caller, { user_id }: Owned): boolean => user_id === null || user_id === caller.user.id

/** Of what is visible, admins keep what is shared and everyone the own. @throws forbidden 403 */
export function requireKeeper(caller: Caller, record: Owned): void {
  if (record.user_id === null && !isAdmin(caller)) throw forbidden('what all share is kept by admins', 'admin')
}

/** @throws forbidden 403 */
export function requireSetting(isOn: boolean, setting: string): asserts isOn {
  if (!isOn) throw new PlatformError('forbidden', `the organization's setting ${setting} is off`, { setting })
}
