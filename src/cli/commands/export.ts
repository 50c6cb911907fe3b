import { createMemory } from '../../app/memory.ts'
import { systemClock } from '../../base/clock.ts'
import { loadConfig } from '../../config/load.ts'
import { exportStore } from '../../memory/export/write.ts'
import { findWorkspace } from '../../memory/store/workspaces.ts'
import { letYoungGenerationGrow } from '../collector.ts'
import { defineCommand } from '../command.ts'
import { CliError, EXIT } from '../exit.ts'
import { counted } from '../output.ts'
import { CONFIG_FLAG, DATA_DIR_FLAG } from '../server-flags.ts'
import { requireDatabase } from '../stores.ts'
import { writeStream } from '../streams.ts'
import { chosenWorkspaces, explained } from '../transfer.ts'

export const exportFile = defineCommand({
  args: { file: { help: 'New file, compressed when its name ends in .gz; - is standard output' } },
  flags: {
    ...CONFIG_FLAG,
    ...DATA_DIR_FLAG,
    workspace: { value: 'ws', short: 'w', repeat: true, help: 'Only this workspace; may be given several times' },
  },
  notes:
    'Writes all workspaces as JSON lines: Memories with every version, tags, Edges, pins, agents and the ledger, of one ' +
    'moment. Vectors are not in it: they are made again by `mem import`. Opens the stores directly, so it works beside a ' +
    'running server and without one. MEM_WORKSPACE does not narrow it.',
  examples: ['export mem.jsonl.gz', 'export notes.jsonl --workspace ws_01...', 'export - | ssh other mem import -'],
  async run(context, { file, workspace, ...flags }) {
    const { io, output } = context
    const config = loadConfig({ flags, env: io.env })
    requireDatabase(config)
    const memory = await createMemory(config, systemClock)
    letYoungGenerationGrow()
    try {
      const { seams } = memory.service
      const only = chosenWorkspaces(context, workspace)
      for (const id of only ?? []) {
        if (await findWorkspace(seams.metadata, id)) continue
        throw new CliError(EXIT.notFound, `workspace ${id} does not exist here`)
      }
      const records = await explained(writeStream(io, file, (write) => exportStore(seams, only, write)))
      const told = `${counted(records.workspace, 'workspace')}, Memories: ${records.memory}, ledger entries: ${records.ledger}`
      if (file === '-') output.note(told)
      else await output.answer({ file, records }, () => [[file, told]])
    } finally {
      await memory.close()
    }
  },
})
