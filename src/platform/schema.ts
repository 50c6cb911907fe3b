import { join } from 'node:path'
import { packageRoot } from '../base/package-root.ts'
import type { Database } from '../database/database.ts'
import { migrate, readMigrationStates, revertMigrations, type MigrationState } from '../database/migrate.ts'

/** The schema of the platform and of the services that stand on it: one series of migrations. Contract: git-host.md 12. */
const SERVICE = 'platform'
const FOLDER = join(packageRoot, 'migrations/platform')
const TABLE = 'platform_schema_migrations'

/** @throws MigrationError when the schema is newer than this program. */
export const upgradeSchema = (database: Database, now: number): Promise<void> =>
  migrate(database, SERVICE, FOLDER, now, { table: TABLE })

/** Every migration of this program, the oldest first. @throws as `upgradeSchema` */
export const readSchema = (database: Database): Promise<MigrationState[]> =>
  readMigrationStates(database, SERVICE, FOLDER, TABLE)

/** Reverts what is newer than `to`, the latest first; gives the versions reverted. @throws as `upgradeSchema` */
export const downgradeSchema = (database: Database, to: number): Promise<number[]> =>
  revertMigrations(database, SERVICE, FOLDER, TABLE, to)
