import { defineCommand } from '../command.ts'
import { connectWorkspace } from '../connect.ts'

export const restore = defineCommand({
  args: { mem: { help: 'Memory id (mem_…)' }, wmk: { help: 'Watermark whose content to bring back' } },
  flags: { 'if-match': { value: 'wmk', help: 'Only if this is still the head; else the head is read first' } },
  notes: 'An update with the old content: it gets a fresh watermark, and the tags of now stay.',
  examples: ['restore mem_01JZ8QK3V5M9T2X7R4N6P0B1CD wmk_01JZ8QK3V6A1B2C3D4E5F6G7H8'],
  async run(context, { mem, wmk, 'if-match': ifMatch }) {
    const { client, workspace } = connectWorkspace(context)
    const old = await client.lookupAt(workspace, mem, wmk)
    const result = await client.update(workspace, mem, { content: old.content }, ifMatch ?? old.current_watermark)
    await context.output.answer(result, () => [[result.memory_id, result.watermark, `as at ${wmk}`]])
  },
})
