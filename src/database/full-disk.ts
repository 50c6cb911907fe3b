import { open, rm } from 'node:fs/promises'

/** SQLite, PostgreSQL, the system, and a quota of it. */
const CODES: readonly unknown[] = ['SQLITE_FULL', '53100', 'ENOSPC', 'EDQUOT']

/** Whether something failed because there is no room left. */
export const isDiskFull = (error: unknown): boolean =>
  error instanceof Error && (('code' in error && CODES.includes(error.code)) || isDiskFull(error.cause))

/** Some transactions. */
const ROOM = Buffer.alloc(64 * 1024, 1)

/** Writes a little beside a file, and takes it back. @throws what the system says where there is no room for it */
export async function probeRoom(beside: string): Promise<void> {
  const path = `${beside}-probe-${process.pid}`
  try {
    const file = await open(path, 'w', 0o600)
    try {
      await file.writeFile(ROOM)
    } finally {
      await file.close()
    }
  } finally {
    await rm(path, { force: true })
  }
}
