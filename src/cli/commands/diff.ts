import { createTwoFilesPatch, FILE_HEADERS_ONLY } from 'diff'
import { defineCommand } from '../command.ts'
import { connectWorkspace } from '../connect.ts'

export const diff = defineCommand({
  args: {
    mem: { help: 'Memory id (mem_…)' },
    from: { help: 'Watermark of the old version (wmk_…)' },
    to: { optional: true, help: 'Watermark of the new version; else the head' },
  },
  examples: [
    'diff mem_01JZ8QK3V5M9T2X7R4N6P0B1CD wmk_01JZ8QK3V6A1B2C3D4E5F6G7H8',
    'diff mem_01JZ8QK3V5M9T2X7R4N6P0B1CD wmk_01JZ8QK3V6A1B2C3D4E5F6G7H8 wmk_01JZ8QK3W0J1K2M3N4P5Q6R7S8',
  ],
  async run(context, { mem, from, to }) {
    const { client, workspace } = connectWorkspace(context)
    const [older, newer] = await Promise.all([
      client.lookupAt(workspace, mem, from),
      to === undefined ? client.lookup(workspace, mem) : client.lookupAt(workspace, mem, to),
    ])
    const unified = createTwoFilesPatch(
      `${mem}@${older.head_watermark}`,
      `${mem}@${newer.head_watermark}`,
      older.content,
      newer.content,
      older.updated_at,
      newer.updated_at,
      { headerOptions: FILE_HEADERS_ONLY },
    )
    const text = older.content === newer.content ? '' : unified
    const answer = { memory_id: mem, from: older.head_watermark, to: newer.head_watermark, diff: text }
    await context.output.text(answer, text)
  },
})
