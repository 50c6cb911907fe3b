import type { Queryable } from '../database/database.ts'
import type { ProjectScope } from './caller.ts'

/** What the platform needs of others. */

export interface Logger {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** The repositories that are linked to projects. */
export interface RepositoryLinks {
  exists(db: Queryable, scope: ProjectScope, repositoryLinkId: number): Promise<boolean>
}

/** Who keeps the users of an organization in mind, and must learn of a change. */
export interface UserWatch {
  /** Within the transaction that changes them. */
  changing(tx: Queryable, organizationId: number): Promise<void>
  /** Behind it, before the answer. */
  changed(organizationId: number): Promise<void>
}
