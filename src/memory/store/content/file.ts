import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { access, open, readdir, readFile, rename, rm, rmdir, stat, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { eachBounded } from '../../../base/bounded.ts'
import { makeDirectory } from '../../../base/directory.ts'
import { flushDirectory } from '../../../base/flush.ts'
import { ContentError, type ContentStore, type StoredObject } from './store.ts'

/** Node has four threads for files; a few more keep them busy. */
const AT_ONCE = 16
const PAGE = 1000
const KEY = /^[A-Za-z0-9_-]{1,128}(\/[A-Za-z0-9_-]{1,128}){2}$/

/** Bodies as files, `<root>/<workspace>/<memory>/<version>`: directories 0700, files 0600. Contract: memory.md 9.1. */
export class FileContent implements ContentStore {
  readonly location: string

  constructor(root: string) {
    this.location = root
  }

  /** Whole or not at all: written beside, flushed, renamed, and the directory flushed. What a crash leaves is swept. */
  async put(key: string, body: Uint8Array, signal?: AbortSignal): Promise<void> {
    const path = this.#pathOf(key)
    // The name is that of an object which no version has: the sweeper takes it for an orphan.
    const draft = `${path}-draft-${randomBytes(8).toString('hex')}`
    await told(path, async () => {
      signal?.throwIfAborted()
      await this.#create(draft, body)
      try {
        signal?.throwIfAborted()
        await rename(draft, path)
      } catch (error) {
        await rm(draft, { force: true })
        throw error
      }
      await flushDirectory(dirname(path))
    })
  }

  async get(keys: readonly string[], signal?: AbortSignal): Promise<Map<string, Uint8Array>> {
    const found = new Map<string, Uint8Array>()
    await eachBounded(keys, AT_ONCE, async (key) => {
      signal?.throwIfAborted()
      const path = this.#pathOf(key)
      const body = await told(path, () => orAbsent(readFile(path)))
      if (body) found.set(key, body)
    })
    return found
  }

  async delete(keys: readonly string[]): Promise<void> {
    const directories = new Set<string>()
    await eachBounded(keys, AT_ONCE, async (key) => {
      const path = this.#pathOf(key)
      await told(path, () => orAbsent(unlink(path)))
      directories.add(dirname(path))
    })
    await eachBounded([...directories], AT_ONCE, (directory) => told(directory, () => removeIfEmpty(directory)))
  }

  async *list(prefix: string, after = ''): AsyncGenerator<StoredObject[]> {
    let page: StoredObject[] = []
    const [workspaceId = '', memoryId] = prefix.split('/').filter(Boolean)
    const root = join(this.location, workspaceId)
    const memories = memoryId === undefined ? await namesIn(root) : [memoryId]
    for (const memory of memories) {
      // A Memory that ends before the key has nothing behind it.
      if (`${workspaceId}/${memory}/~` <= after) continue
      for (const version of await namesIn(join(root, memory))) {
        const key = `${workspaceId}/${memory}/${version}`
        if (key <= after || !KEY.test(key)) continue
        const found = await told(join(this.location, key), () => orAbsent(stat(join(this.location, key))))
        if (found) page.push({ key, storedAt: found.mtimeMs })
      }
      if (page.length >= PAGE) {
        yield page
        page = []
      }
    }
    if (page.length > 0) yield page
  }

  /** A root that is not there yet is made with the first body, so what counts is where it would be made. */
  async ping(): Promise<void> {
    let directory = this.location
    while (!(await orAbsent(stat(directory))) && dirname(directory) !== directory) directory = dirname(directory)
    await told(directory, () => access(directory, constants.R_OK | constants.W_OK | constants.X_OK))
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  #pathOf(key: string): string {
    if (!KEY.test(key)) throw new ContentError(`${JSON.stringify(key.slice(0, 200))} is no content key`)
    return join(this.location, key)
  }

  async #create(path: string, body: Uint8Array): Promise<void> {
    const directory = dirname(path)
    const first = await makeDirectory(directory)
    // The names of new directories stand in the ones above.
    for (let made = directory; first !== undefined && made.length >= first.length; made = dirname(made)) {
      await flushDirectory(dirname(made))
    }
    const file = await open(path, 'wx', 0o600)
    try {
      await file.writeFile(body)
      await file.sync()
      await file.close()
    } catch (error) {
      await file.close().catch(() => undefined)
      await rm(path, { force: true })
      throw error
    }
  }
}

/** What was deleted stays so after a power loss. */
async function removeIfEmpty(directory: string): Promise<void> {
  try {
    await rmdir(directory)
    await flushDirectory(dirname(directory))
  } catch (error) {
    if (hasCode(error, 'ENOTEMPTY', 'EEXIST')) await orAbsent(flushDirectory(directory))
    else if (!hasCode(error, 'ENOENT')) throw error
  }
}

async function namesIn(directory: string): Promise<string[]> {
  return ((await told(directory, () => orAbsent(readdir(directory)))) ?? []).sort()
}

const hasCode = (error: unknown, ...codes: string[]): boolean =>
  error instanceof Error && 'code' in error && codes.some((code) => error.code === code)

/** Undefined where there is no such file or directory. */
async function orAbsent<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
    throw error
  }
}

async function told<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') throw error
    throw new ContentError(`${path}: ${error.message}`, { cause: error })
  }
}
