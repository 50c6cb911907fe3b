import { defineCommand } from '../command.ts'
import { connectWorkspace } from '../connect.ts'
import { tagList } from '../output.ts'

export const lookup = defineCommand({
  args: { mem: { help: 'Memory id (mem_…)' } },
  flags: { at: { value: 'wmk', help: 'As it was at this watermark' } },
  notes: 'Text output is the content; with --quiet nothing but the content.',
  examples: [
    'lookup mem_01JZ8QK3V5M9T2X7R4N6P0B1CD',
    'lookup mem_01JZ8QK3V5M9T2X7R4N6P0B1CD --at wmk_01JZ8QK3V6A1B2C3D4E5F6G7H8',
  ],
  async run(context, { mem, at }) {
    const { client, workspace } = connectWorkspace(context)
    const memory = await (at === undefined ? client.lookup(workspace, mem) : client.lookupAt(workspace, mem, at))
    const remark = [memory.id, memory.head_watermark, memory.updated_at, tagList(memory.tags)].join('  ').trimEnd()
    await context.output.text(memory, memory.content, remark)
  },
})
