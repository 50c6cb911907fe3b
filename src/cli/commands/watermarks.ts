import { defineCommand, PAGE_FLAGS } from '../command.ts'
import { connectWorkspace } from '../connect.ts'

export const watermarks = defineCommand({
  args: { mem: { help: 'Memory id (mem_…)' } },
  flags: PAGE_FLAGS,
  notes: 'Those of the last seven days, the newest first.',
  examples: ['watermarks mem_01JZ8QK3V5M9T2X7R4N6P0B1CD'],
  async run(context, { mem, ...page }) {
    const { client, workspace } = connectWorkspace(context)
    const answer = await client.watermarkHistory(workspace, mem, page)
    await context.output.list(answer, answer.watermarks, (entry) => [
      entry.watermark,
      entry.created_at,
      entry.op,
      entry.agent_id,
    ])
  },
})
