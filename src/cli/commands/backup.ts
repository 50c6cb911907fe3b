import { existsSync } from 'node:fs'
import { createMemory } from '../../app/memory.ts'
import { systemClock, toTimestamp } from '../../base/clock.ts'
import { version } from '../../base/version.ts'
import type { Stores } from '../../config/dsn.ts'
import { loadConfig, type Config } from '../../config/load.ts'
import { BackupError, createBackup, restoreBackup, verifyBackup, type StoreFile } from '../../database/backup.ts'
import { DamageError } from '../../database/damage.ts'
import { dropLeases } from '../../memory/store/outbox.ts'
import { defineCommand } from '../command.ts'
import { CliError, EXIT } from '../exit.ts'
import { CONFIG_FLAG, DATA_DIR_FLAG } from '../server-flags.ts'
import { requireDatabase } from '../stores.ts'

const FLAGS = { ...CONFIG_FLAG, ...DATA_DIR_FLAG } as const
const SEAMS = ['metadata', 'vector', 'graph', 'ledger', 'content'] as const satisfies readonly (keyof Stores)[]

export const create = defineCommand({
  args: { dir: { help: 'New or empty directory' } },
  flags: FLAGS,
  notes:
    'Copies the SQLite files of one moment, beside a running server or without one, that of the kernel too; a damaged ' +
    'one is refused. The configuration, skills, keys and certificates are not in it.',
  examples: ['backup create /backups/$(date +%F)', 'backup create ./copy --data-dir /var/lib/mem'],
  async run({ io, output }, { dir, ...flags }) {
    const config = loadConfig({ flags, env: io.env })
    const files = filesThere(config)
    if (config.kernel.storage.driver === 'postgres')
      output.note('The kernel is in PostgreSQL, not in this backup: use pg_dump.')
    if (files[0].stores[0] === 'kernel')
      output.note(`There is no ${config.stores.metadata.dsn}: this is a backup of the kernel alone.`)
    const content = config.stores.content
    if (content && isCopiedApart('content', content.driver))
      output.note(`Bodies are in ${content.dsn}, not in this backup: copy them after it.`)
    const facts = { version, created_at: toTimestamp(systemClock.now()) }
    const manifest = await refused(createBackup(files, dir, facts))
    await output.answer(manifest, () => manifest.files.map(({ name, bytes }) => [name, `${bytes} bytes`]))
  },
})

export const restore = defineCommand({
  args: { dir: { help: 'Directory that `mem backup create` wrote' } },
  flags: FLAGS,
  notes: 'Checks the backup, then puts its files where the configuration wants them. Overwrites nothing.',
  examples: ['backup restore /backups/2026-01-02', 'backup restore ./copy --data-dir /var/lib/mem'],
  async run({ io, output }, { dir, ...flags }) {
    const config = loadConfig({ flags, env: io.env })
    const files = storeFiles(config)
    const manifest = await refused(verifyBackup(dir))
    const pathOf = (store: string): string | undefined => files.find(({ stores }) => stores.includes(store))?.path
    const paths = await refused(restoreBackup(dir, manifest, pathOf))
    if (manifest.files.some(({ stores }) => stores.includes('metadata'))) await settle(config)
    await output.answer({ restored: paths, created_at: manifest.created_at }, () => paths.map((path) => [path]))
  },
})

/** Bodies in files or S3 never change: copied after the records, they are all that the records need. */
const isCopiedApart = (seam: string, driver: string): boolean => seam === 'content' && /^(file|s3)$/.test(driver)

/** What servers made of them: all with a memory, that of the kernel where one ran, and alone where it is all that ran. */
function filesThere(config: Config): [StoreFile, ...StoreFile[]] {
  const [first, ...others] = storeFiles(config)
  const [kernel] = others.filter(({ path, stores: [store] }) => store === 'kernel' && existsSync(path))
  if (kernel && !existsSync(first.path)) return [kernel]
  requireDatabase(config)
  return [first, ...others.filter((file) => file.stores[0] !== 'kernel' || file === kernel)]
}

/** The SQLite files of the stores, that of metadata first; that of the kernel is there once a server with a kernel ran. */
function storeFiles({ stores, kernel: { storage } }: Config): [StoreFile, ...StoreFile[]] {
  const placed = SEAMS.flatMap((seam): { seam: string; path: string }[] => {
    const store = stores[seam]
    if (store === undefined || isCopiedApart(seam, store.driver)) return []
    if (store.driver === 'sqlite') return [{ seam, path: store.dsn }]
    throw new CliError(
      EXIT.failure,
      `storage.${seam}_driver is ${store.driver}, and only SQLite files are backed up`,
      'PostgreSQL has pg_dump and pg_basebackup; directories and buckets are copied with your own tools.',
    )
  })
  if (storage.driver === 'sqlite') placed.push({ seam: 'kernel', path: storage.path })
  const [first, ...others] = placed
  if (first === undefined) throw new Error('there is always a metadata store')
  const files: [StoreFile, ...StoreFile[]] = [{ path: first.path, stores: [first.seam] }]
  for (const { seam, path } of others) {
    const known = files.findIndex((file) => file.path === path)
    const file = files[known]
    if (file) files[known] = { path, stores: [...file.stores, seam] }
    else files.push({ path, stores: [seam] })
  }
  return files
}

/** Brings to their stores what was on its way when the backup was made, so that the ledger is whole at once. */
async function settle(config: Config): Promise<void> {
  const memory = await createMemory(config, systemClock)
  const { seams } = memory.service
  await seams.metadata.transaction(dropLeases)
  await seams.deliver()
  await memory.close()
}

const DAMAGE_HINT = 'Stop the server and bring back a backup that is whole; `mem export` may still read what is not.'

async function refused<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    const isOfFiles = error instanceof Error && 'syscall' in error // a full disk, a path that is not ours
    if (error instanceof DamageError) throw new CliError(EXIT.failure, error.message, DAMAGE_HINT)
    throw error instanceof BackupError || isOfFiles ? new CliError(EXIT.failure, error.message) : error
  }
}
