import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createMemory, type Memory } from '../../../src/app/memory.ts'
import { systemClock } from '../../../src/base/clock.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { readExport } from '../../../src/memory/export/read.ts'
import { restore, type RestoreOptions, type RestoreSummary } from '../../../src/memory/export/restore.ts'
import { exportStore } from '../../../src/memory/export/write.ts'
import { verifyChain, type Verification } from '../../../src/memory/ledger.ts'
import { findChain, listChains } from '../../../src/memory/store/chains.ts'
import { createPostgresDatabase } from '../../support/postgres.ts'

/** Stores of their own, and the environment that leads a program to them. */
export interface Place {
  directory: string
  env: Record<string, string>
  /** Opens them; whoever does closes them. */
  open(): Promise<Memory>
  remove(): Promise<void>
}

const ALL_SEAMS = ['METADATA', 'VECTOR', 'GRAPH', 'LEDGER']

export async function createPlace(
  dialect: 'sqlite' | 'postgres' = 'sqlite',
  more: (directory: string) => Record<string, string> = () => ({}),
): Promise<Place> {
  const directory = mkdtempSync(join(tmpdir(), 'mem-test-export-'))
  const database = dialect === 'postgres' ? await createPostgresDatabase() : undefined
  const env: Record<string, string> = {
    HOME: directory,
    MEM_DATA_DIR: join(directory, 'data'),
    ...(database && { MEM_METADATA_DSN: database.url }),
    ...(database && Object.fromEntries(ALL_SEAMS.map((seam) => [`MEM_${seam}_DRIVER`, 'postgres']))),
    ...more(directory),
  }
  const loaded = loadConfig({ env, flags: {}, cwd: directory })
  const config = { ...loaded, telemetry: { ...loaded.telemetry, log_level: 'error' as const } }
  return {
    directory,
    env,
    open: () => createMemory(config, systemClock),
    remove: async () => {
      await database?.drop()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** Runs `work` over the opened stores. */
export async function within<T>(place: Place, work: (memory: Memory) => Promise<T>): Promise<T> {
  const memory = await place.open()
  try {
    return await work(memory)
  } finally {
    await memory.close()
  }
}

export const exported = (place: Place, only?: readonly string[]): Promise<string> =>
  within(place, async ({ service }) => {
    const parts: string[] = []
    await exportStore(service.seams, only, async (text) => parts.push(text))
    return parts.join('')
  })

/** As bytes in pieces of any length. */
export async function* piecesOf(text: string, length = 100): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text)
  for (let start = 0; start < bytes.length; start += length) yield bytes.subarray(start, start + length)
}

export const imported = (place: Place, text: string, options: Partial<RestoreOptions> = {}): Promise<RestoreSummary> =>
  within(place, ({ service, ids }) => {
    const { seams, embedding } = service
    const parts = { seams, embedding, clock: systemClock, holder: ids('proc_') }
    return restore(parts, readExport(piecesOf(text, 1000)), { rule: 'error', only: undefined, ...options })
  })

/** Every chain of the stores, as `mem ledger verify` sees it. */
export const verified = (place: Place): Promise<Verification[]> =>
  within(place, async ({ service: { seams } }) => {
    const { metadata, ledger } = seams
    if (!ledger) throw new Error('the ledger is a file')
    const chains = await listChains(metadata)
    return Promise.all(chains.map(({ workspaceId: id }) => verifyChain(ledger, id, () => findChain(metadata, id))))
  })
