import { defineCommand } from '../command.ts'
import { connectWorkspace } from '../connect.ts'
import { readContent } from '../input.ts'
import { counted } from '../output.ts'

export const update = defineCommand({
  args: { mem: { help: 'Memory id (mem_…)' } },
  flags: {
    text: { value: 'text', help: 'The new content; - reads standard input' },
    'from-file': { value: 'file', help: 'Take the new content from a file' },
    'if-match': { value: 'wmk', help: 'Only if this is still the head; else the head is read first' },
  },
  examples: [
    "update mem_01JZ8QK3V5M9T2X7R4N6P0B1CD --text 'The keeper likes wheat bread.'",
    'update mem_01JZ8QK3V5M9T2X7R4N6P0B1CD --from-file notes.md --if-match wmk_01JZ8QK3V6A1B2C3D4E5F6G7H8',
  ],
  async run(context, { mem, text, 'from-file': file, 'if-match': ifMatch }) {
    const { client, workspace } = connectWorkspace(context)
    const content = await readContent(context.io, text, file)
    const watermark = ifMatch ?? (await client.lookup(workspace, mem)).head_watermark
    const result = await client.update(workspace, mem, { content }, watermark)
    await context.output.answer(result, () => [
      [
        result.memory_id,
        result.watermark,
        `${counted(result.cells_re_embedded, 'new Cell')}, ${result.cells_skipped} kept`,
      ],
    ])
  },
})
