import { createMemory } from '../../app/memory.ts'
import { openContentStore } from '../../app/stores.ts'
import { systemClock } from '../../base/clock.ts'
import { loadConfig } from '../../config/load.ts'
import type { Database } from '../../database/database.ts'
import { MigrateContent, type ContentMigrationState } from '../../memory/migrate-content.ts'
import { findCollection } from '../../memory/store/collections.ts'
import { findPosition, type ContentScope } from '../../memory/store/content-migration.ts'
import type { Position } from '../../memory/store/migration.ts'
import { findWorkspace } from '../../memory/store/workspaces.ts'
import { defineCommand, type Io } from '../command.ts'
import { CliError, EXIT, usageError } from '../exit.ts'
import { CONFIG_FLAG, DATA_DIR_FLAG } from '../server-flags.ts'
import { requireDatabase } from '../stores.ts'
import { untilStopped } from '../until-stopped.ts'

const BEGINNING: Position = [Number.MIN_SAFE_INTEGER, '']

/** Contract: memory.md 11.4. */
export const content = defineCommand({
  flags: {
    ...CONFIG_FLAG,
    ...DATA_DIR_FLAG,
    'metadata-driver': { value: 'driver', help: 'Store of records, where the bodies are: sqlite, postgres' },
    'content-driver': { value: 'driver', required: true, help: 'Where they go: file, s3, sqlite, postgres' },
    'content-dsn': { value: 'dsn', help: 'Directory, s3://bucket/prefix, path or URL of that store' },
    collection: { value: 'id', help: 'Only the Memories of this collection' },
    'dry-run': { help: 'Count what there is to do, and write nothing' },
    'max-rate': { value: 'n', integer: true, default: 100, help: 'Memories a second at most, 0 for no limit' },
    'resume-from': { value: 'memory', help: 'Begin with this Memory: the resume_token of an earlier run' },
    verify: { help: 'Compare both stores instead of copying; exit code 4 when they differ' },
    prune: { help: 'Clear the bodies in the records that are alike in both stores' },
  },
  notes:
    'Copies the bodies of --workspace, all versions and Cells, opening the stores directly: beside a running server or ' +
    'without one. What is there already is left alone, so it may be interrupted and run again. The order is: --dry-run, the ' +
    'copy, --verify, then storage.content_driver in mem.yaml and a restart, and --prune last. Prints a JSON line every 100 ' +
    'Memories and one at the end; exit code 4 when something is left to do.',
  examples: [
    'migrate content -w ws_01... --content-driver file --content-dsn /srv/bodies --dry-run',
    'migrate content -w ws_01... --content-driver s3 --content-dsn s3://bucket/mem --verify',
  ],
  async run({ io, settings }, flags) {
    const { workspace: workspaceId, agentId } = settings
    if (workspaceId === undefined) throw usageError('this command needs a workspace', 'Pass --workspace <id>.')
    const maxRate = flags['max-rate']
    if (maxRate < 0) throw usageError('--max-rate must not be below 0')
    const { 'content-driver': _driver, 'content-dsn': _dsn, ...others } = flags
    const target = loadConfig({ flags, env: io.env })
    const config = loadConfig({ flags: others, env: io.env })
    requireDatabase(config)
    const dryRun = flags['dry-run'] ?? false
    const mode = flags.prune ? 'prune' : flags.verify ? 'verify' : 'copy'
    const memory = await createMemory(config, systemClock)
    const { service, ids, log } = memory
    const { seams, mutations } = service
    let opened: Awaited<ReturnType<typeof openContentStore>> | undefined
    try {
      const scope = await scopeOf(seams.metadata, workspaceId, flags.collection, flags['resume-from'])
      opened = await openContentStore(target, seams.metadata, dryRun || mode !== 'copy')
      if (mode === 'prune' && !dryRun && config.stores.content?.dsn !== target.stores.content?.dsn) {
        io.stderr.write('what is pruned is read only with storage.content_driver and _dsn as given here\n')
      }
      const caller = { requestId: ids('req_'), startedAt: performance.now(), agentId }
      const show = showing(io)
      const options = { scope, mode, dryRun, maxRate, report: show.line, tick: show.tick } as const
      const migration = new MigrateContent({ seams, mutations, target: opened.store, log })
      const state = await untilStopped((signal) => migration.run({ ...caller, signal }, options))
      show.line(state)
      refuseUndone(state)
    } finally {
      await memory.close()
      await opened?.close()
    }
  },
})

/** @throws CliError 8 for a workspace, a collection or a Memory that is not there. */
async function scopeOf(
  metadata: Database,
  workspaceId: string,
  collectionId: string | undefined,
  first: string | undefined,
): Promise<ContentScope> {
  const absent = (what: string): CliError => new CliError(EXIT.notFound, `${what} does not exist here`)
  if (!(await findWorkspace(metadata, workspaceId))) throw absent(`workspace ${workspaceId}`)
  if (collectionId !== undefined && !(await findCollection(metadata, workspaceId, collectionId))) {
    throw absent(`collection ${collectionId}`)
  }
  const from = first === undefined ? BEGINNING : await findPosition(metadata, workspaceId, first)
  if (!from) throw absent(`Memory ${first}`)
  return { workspaceId, collectionId, from }
}

/** JSON lines on stdout; on a terminal also a line on stderr that changes. */
function showing({ stdout, stderr }: Io) {
  const clear = stderr.isTTY ? '\r\x1b[2K' : ''
  return {
    line: (state: ContentMigrationState): void => {
      if (clear) stderr.write(clear)
      stdout.write(`${JSON.stringify(state)}\n`)
    },
    tick: (done: number, total: number): void => {
      if (clear) stderr.write(`${clear}${done} of ${total} Memories`)
    },
  }
}

function refuseUndone({ event, errors, mismatches = 0 }: ContentMigrationState): void {
  const hint = 'Run it again to go on; --resume-from <resume_token> passes over what is done.'
  if (event === 'interrupted') throw new CliError(EXIT.failure, 'interrupted before the end', hint)
  if (errors > 0)
    throw new CliError(EXIT.failure, `${errors} Memories could not be migrated`, 'See the log above, and run it again.')
  if (mismatches > 0) {
    throw new CliError(
      EXIT.failure,
      `${mismatches} Memories differ between the stores`,
      'The log above names them. Run the copy again, then --verify.',
    )
  }
}
