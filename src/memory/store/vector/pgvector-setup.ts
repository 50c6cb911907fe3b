import { errorText } from '../../../base/errors.ts'
import type { Database, Queryable } from '../../../database/database.ts'

/**
 * Makes sure that the database has the extension pgvector, and makes it where that is allowed.
 * @throws Error that says what to do
 */
export async function requirePgvector(db: Database): Promise<void> {
  const problem = await missingPgvector(db)
  if (problem !== undefined) throw new Error(problem)
  await db.run('CREATE EXTENSION IF NOT EXISTS vector').catch(async (error: unknown) => {
    // Another process may have made it at the same time.
    if ((await findExtension(db))?.installed) return
    throw new Error(
      `the extension pgvector cannot be made here (${errorText(error)}): let an administrator of the database run ` +
        'CREATE EXTENSION vector; then start again',
    )
  })
}

/** Why the database cannot hold vectors, and what to do; undefined when it can, or will with CREATE EXTENSION. */
export async function missingPgvector(db: Queryable): Promise<string | undefined> {
  const extension = await findExtension(db)
  if (!extension) {
    return (
      'the server has no extension pgvector: install it there (a package such as postgresql-18-pgvector), or choose ' +
      'storage.vector_driver postgres, which needs none'
    )
  }
  const version = extension.installed ?? extension.available
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > 0 || minor >= 5) return undefined
  return `pgvector ${version} has no HNSW indexes: install 0.5.0 or newer and run ALTER EXTENSION vector UPDATE`
}

const findExtension = (db: Queryable): Promise<{ installed: string | null; available: string } | undefined> =>
  db.get(
    `SELECT installed_version AS installed, default_version AS available FROM pg_catalog.pg_available_extensions
      WHERE name = 'vector'`,
  )
