import type { SkillCatalog } from './ports.ts'
import type * as stores from './store/store.ts'

/**
 * What embedders of the kernel use. Databases and schemas are loaded when they are first needed: whoever uses something else
 * of the library waits for none of it. Contract: kernel-2.md 14
 */
export { createDefaultAuthorizer } from './actions/authorizer.ts'
export { createFunctionTransport, type ActionHandler } from './actions/function-transport.ts'
export { KernelEngine } from './engine-face.ts'
export type { KernelEngineOptions } from './engine-options.ts'
export { createModelHost, type ModelHostOptions } from './engine/model-host.ts'
export { KernelError } from './errors.ts'
export { defaultPolicy } from './policy.ts'
export { ModelFailure } from './ports.ts'
export type * from './ports.ts'
export type { KernelStore, SqliteStore } from './store/store.ts'
export type { PostgresStoreOptions, SqliteStoreOptions } from './store/store-options.ts'

/** @throws MigrationError when the schema is newer than this program, or differs from it */
export const newSqliteStore = async (...given: Parameters<typeof stores.newSqliteStore>): Promise<stores.SqliteStore> =>
  (await import('./store/store.ts')).newSqliteStore(...given)

/** @throws MigrationError as `newSqliteStore` */
export const newPostgresStore = async (
  ...given: Parameters<typeof stores.newPostgresStore>
): Promise<stores.KernelStore> => (await import('./store/store.ts')).newPostgresStore(...given)

/** A catalog of skills, as their authors write them. @throws KernelError for one that is none, or two that differ */
export const createSkillCatalog = async (definitions: readonly unknown[]): Promise<SkillCatalog> =>
  (await import('./actions/catalog.ts')).createSkillCatalog(definitions)
