import { mkdirSync, statSync } from 'node:fs'
import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Its owner's alone. */
const MODE = 0o700

/*
 * Directories are made one by one: Node's own way to make those above as well runs for ever below one that takes none, as
 * /proc.
 */

/** Makes a directory, and those above that are missing; gives the first one made. @throws the error of the system */
export function makeDirectorySync(path: string): string | undefined {
  if (isDirectory(path)) return undefined
  const above = makeDirectorySync(dirname(path))
  try {
    mkdirSync(path, { mode: MODE })
  } catch (error) {
    if (!isDirectory(path)) throw error // which another process made meanwhile
  }
  return above ?? path
}

/** As `makeDirectorySync`. */
export async function makeDirectory(path: string): Promise<string | undefined> {
  const isThere = (): Promise<boolean> => stat(path).then((found) => found.isDirectory(), () => false) // prettier-ignore
  if (await isThere()) return undefined
  const above = await makeDirectory(dirname(path))
  try {
    await mkdir(path, { mode: MODE })
  } catch (error) {
    if (!(await isThere())) throw error
  }
  return above ?? path
}

const isDirectory = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
