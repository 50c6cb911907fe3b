import { SqliteDriver } from './sqlite-driver.ts'

/** A SQLite file that is damaged; the message says which. */
export class DamageError extends Error {
  constructor(name: string, found: string) {
    super(`${name} is damaged: ${found.replace(/\s+/g, ' ')}`)
  }
}

/**
 * Walks all pages, in a second or two for a GB in which nothing else of this process runs. It finds pages that are lost, torn
 * or mixed up, and not another letter inside of a text.
 * @param readonly changes nothing, and may leave `-wal` and `-shm` beside the file
 * @throws DamageError that tells of the file as `name`
 */
export function refuseDamaged(path: string, name: string, readonly = false): void {
  const database = new SqliteDriver(path, { fileMustExist: true, readonly })
  try {
    const found = legible(name, () => database.pragma('quick_check(1)', { simple: true }))
    if (found !== 'ok') throw new DamageError(name, String(found))
  } finally {
    database.close()
  }
}

/** Runs `read` on the file of that name. @throws DamageError where it meets pages that are no SQLite */
export function legible<T>(name: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    const isDamage = error instanceof SqliteDriver.SqliteError && /^SQLITE_(CORRUPT|NOTADB)/.test(error.code)
    throw isDamage ? new DamageError(name, error.message) : error
  }
}
