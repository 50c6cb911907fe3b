import { open } from 'node:fs/promises'

/** Until the names in it are on the disk. */
export async function flushDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}
