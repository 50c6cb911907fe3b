import { createHash } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { copyFile, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type Sqlite from 'better-sqlite3'
import * as z from 'zod'
import { makeDirectory } from '../base/directory.ts'
import { errorText } from '../base/errors.ts'
import { legible, refuseDamaged } from './damage.ts'
import { SqliteDriver } from './sqlite-driver.ts'

/** A backup that cannot be made or is no good; the message says why. */
export class BackupError extends Error {}

/** A SQLite file and what it holds; a backup keeps it under the name of the first. */
export interface StoreFile {
  path: string
  stores: readonly [string, ...string[]]
}

const MANIFEST = 'manifest.json'
const FORMAT = 1

const manifestSchema = z.strictObject({
  format: z.literal(FORMAT),
  /** Of the program that made it. */
  version: z.string(),
  created_at: z.string(),
  files: z.array(
    z.strictObject({
      name: z.string().regex(/^[a-z]+\.db$/),
      stores: z.tuple([z.string()], z.string()),
      bytes: z.int(),
      sha256: z.string(),
    }),
  ),
})
export type Manifest = z.infer<typeof manifestSchema>

/**
 * Copies the files into an empty or new directory while others read and write them. The copies show one moment: mutations
 * wait for the lock of the first file, some milliseconds, until a snapshot of each file has begun. What fails leaves nothing
 * behind.
 * @throws BackupError when the directory holds something, DamageError
 */
export async function createBackup(
  files: readonly [StoreFile, ...StoreFile[]],
  directory: string,
  facts: Pick<Manifest, 'version' | 'created_at'>,
): Promise<Manifest> {
  const made = await makeDirectory(directory)
  if ((await readdir(directory)).length > 0) {
    throw new BackupError(
      `${directory} is not empty: name a new directory, or remove what a backup that was cut off left`,
    )
  }
  try {
    const manifest: Manifest = { format: FORMAT, ...facts, files: await copyFiles(files, directory) }
    // Last: a directory without it is no backup.
    await writeFile(join(directory, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600 })
    return manifest
  } catch (error) {
    for (const name of [...files.map(nameOf), MANIFEST]) await rm(join(directory, name), { force: true })
    if (made !== undefined) await rm(directory, { recursive: true })
    throw error
  }
}

async function copyFiles(files: readonly [StoreFile, ...StoreFile[]], directory: string): Promise<Manifest['files']> {
  const snapshots = openSnapshots(files.map(({ path }) => path))
  try {
    const copied: Manifest['files'] = []
    for (const [i, file] of files.entries()) {
      const name = nameOf(file)
      const copy = join(directory, name)
      const snapshot = snapshots[i]
      if (snapshot) await copySnapshot(snapshot, copy)
      copied.push({ name, stores: [...file.stores], ...(await measure(copy)) })
    }
    return copied
  } finally {
    for (const snapshot of snapshots) snapshot.close()
  }
}

const nameOf = ({ stores }: StoreFile): string => `${stores[0]}.db`

/**
 * Copies one database file as it is at this moment, while others read and write it, this process too.
 * @throws BackupError when there is something at `target`, DamageError
 */
export async function backupFile(path: string, target: string): Promise<void> {
  await refuseExisting(target)
  const snapshot = openSnapshot(path)
  const draft = `${target}.part`
  try {
    await rm(draft, { force: true })
    await copySnapshot(snapshot, draft)
    await rename(draft, target)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  } finally {
    snapshot.close()
  }
}

/** 4 MiB: some milliseconds, in which nothing else of this process runs. */
const PAGES_AT_ONCE = 1000

/** What others write meanwhile is not in it: the connection reads one moment, so that no step begins anew. */
async function copySnapshot(snapshot: Sqlite.Database, target: string): Promise<void> {
  await writeFile(target, '', { mode: 0o600 })
  await snapshot.backup(target, { progress: () => PAGES_AT_ONCE })
  await flush(target)
  refuseDamaged(target, snapshot.name)
}

function openSnapshot(path: string): Sqlite.Database {
  const snapshot = new SqliteDriver(path, { readonly: true })
  try {
    snapshot.exec('BEGIN')
    // A transaction begins with its first read.
    legible(path, () => snapshot.prepare('SELECT 1 FROM sqlite_master').get())
    return snapshot
  } catch (error) {
    snapshot.close()
    throw error
  }
}

function openSnapshots(paths: readonly string[]): Sqlite.Database[] {
  const lock = new SqliteDriver(paths[0], { timeout: 5000, fileMustExist: true })
  const snapshots: Sqlite.Database[] = []
  try {
    legible(lock.name, () => lock.exec('BEGIN IMMEDIATE'))
    for (const path of paths) snapshots.push(openSnapshot(path))
    return snapshots
  } catch (error) {
    for (const snapshot of snapshots) snapshot.close()
    throw error
  } finally {
    lock.close()
  }
}

/**
 * The manifest of a backup whose files are all there and unchanged.
 * @throws BackupError naming what is missing or changed
 */
export async function verifyBackup(directory: string): Promise<Manifest> {
  const manifest = await readManifest(directory)
  for (const { name, bytes, sha256 } of manifest.files) {
    const found = await measure(join(directory, name)).catch((error: unknown) => {
      throw new BackupError(`${name} cannot be read: ${errorText(error)}`)
    })
    if (found.bytes !== bytes || found.sha256 !== sha256) throw new BackupError(`${name} is not what was backed up`)
  }
  return manifest
}

async function readManifest(directory: string): Promise<Manifest> {
  const manifest = join(directory, MANIFEST)
  if (!existsSync(manifest)) {
    throw new BackupError(`${directory} holds no backup: there is no ${MANIFEST}, which is written last`)
  }
  try {
    const { data, error } = manifestSchema.safeParse(JSON.parse(await readFile(manifest, 'utf8')))
    if (data) return data
    const [issue] = error.issues
    throw new Error(`${issue?.path.join('.')} in ${MANIFEST}: ${issue?.message}`)
  } catch (error) {
    throw new BackupError(`${directory} holds no backup that this version reads: ${errorText(error)}`)
  }
}

/**
 * Puts the files of a verified backup where `pathOf` says their stores are.
 * @throws BackupError when there is something, or stores of one file have two places, DamageError; nothing is there then
 */
export async function restoreBackup(
  directory: string,
  manifest: Manifest,
  pathOf: (store: string) => string | undefined,
): Promise<string[]> {
  const places = manifest.files.map(({ name, stores }) => ({ name, path: placeOf(stores, pathOf) }))
  if (new Set(places.map(({ path }) => path)).size < places.length) {
    throw new BackupError('these stores were in files of their own, and the configuration puts them into one')
  }
  for (const { path } of places) {
    for (const file of [path, `${path}-wal`]) await refuseExisting(file)
  }
  const drafts = places.map(({ name, path }) => ({ name, path, draft: `${path}.restoring` }))
  try {
    for (const { name, path, draft } of drafts) {
      await makeDirectory(dirname(path))
      await copyFile(join(directory, name), draft)
      await flush(draft)
      refuseDamaged(draft, join(directory, name))
    }
  } catch (error) {
    for (const { draft } of drafts) await rm(draft, { force: true })
    throw error
  }
  for (const { path, draft } of drafts) await rename(draft, path)
  return drafts.map(({ path }) => path)
}

function placeOf(stores: readonly string[], pathOf: (store: string) => string | undefined): string {
  const [path, ...others] = new Set(stores.map(pathOf).filter((each) => each !== undefined))
  if (path === undefined) throw new BackupError(`the configuration has no place for ${stores.join(', ')}`)
  if (others.length > 0) {
    throw new BackupError(`${stores.join(', ')} were in one file, and the configuration puts them into several`)
  }
  return path
}

async function measure(path: string): Promise<{ bytes: number; sha256: string }> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return { bytes: (await stat(path)).size, sha256: hash.digest('hex') }
}

/** Until it is on the disk. */
async function flush(path: string): Promise<void> {
  const file = await open(path, 'r+')
  await file.sync()
  await file.close()
}

async function refuseExisting(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined)
  if (found) throw new BackupError(`${path} exists, and nothing is overwritten: move it away`)
}
