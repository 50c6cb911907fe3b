import { createMemory } from '../../app/memory.ts'
import { systemClock } from '../../base/clock.ts'
import { loadConfig } from '../../config/load.ts'
import type { MigrationState } from '../../memory/migrate-embeddings.ts'
import { findWorkspace } from '../../memory/store/workspaces.ts'
import { defineCommand } from '../command.ts'
import { CliError, EXIT, usageError } from '../exit.ts'
import { CONFIG_FLAG, DATA_DIR_FLAG } from '../server-flags.ts'
import { requireDatabase } from '../stores.ts'
import { untilStopped } from '../until-stopped.ts'

/** Contract: memory.md 11.4. */
export const embeddings = defineCommand({
  flags: {
    ...CONFIG_FLAG,
    ...DATA_DIR_FLAG,
    'dry-run': { help: 'Count what there is to do, and write nothing' },
    'max-rate': { value: 'n', integer: true, default: 100, help: 'Memories a second at most, 0 for no limit' },
  },
  notes:
    'Embeds every Cell that has no vector of the current model of --workspace, and removes vectors of other models. Opens ' +
    'the stores directly, so it works beside a running server and without one. It may be interrupted and run again. ' +
    'Prints a JSON line every 100 Memories and one at the end; exit code 4 when something is left to do.',
  examples: ['migrate embeddings --workspace ws_01...', 'migrate embeddings -w ws_01... --dry-run'],
  async run({ io, settings }, flags) {
    const { workspace: workspaceId, agentId } = settings
    const maxRate = flags['max-rate']
    if (workspaceId === undefined) throw usageError('this command needs a workspace', 'Pass --workspace <id>.')
    if (maxRate < 0) throw usageError('--max-rate must not be below 0')
    const config = loadConfig({ flags, env: io.env })
    requireDatabase(config)
    const print = (state: MigrationState): unknown => io.stdout.write(`${JSON.stringify(state)}\n`)
    const memory = await createMemory(config, systemClock)
    const { service, ids } = memory
    try {
      const workspace = await findWorkspace(service.seams.metadata, workspaceId)
      if (!workspace) throw new CliError(EXIT.notFound, `workspace ${workspaceId} does not exist here`)
      const caller = { requestId: ids('req_'), startedAt: performance.now(), agentId }
      const options = { dryRun: flags['dry-run'] ?? false, maxRate, report: print }
      const state = await untilStopped((signal) =>
        service.migrateEmbeddings.run({ ...caller, signal }, workspace, options),
      )
      print(state)
      if (state.event === 'interrupted') throw new CliError(EXIT.failure, 'interrupted: run it again to go on')
      if (state.errors > 0) {
        throw new CliError(EXIT.failure, `${state.errors} Memories could not be embedded`, 'Run it again to go on.')
      }
    } finally {
      await memory.close()
    }
  },
})
