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
