import { defineCommand } from '../command.ts'
import { connectWorkspace } from '../connect.ts'
import { readContent } from '../input.ts'
import { counted } from '../output.ts'

export const append = defineCommand({
  args: { mem: { help: 'Memory id (mem_…)' } },
  flags: {
    text: { value: 'text', required: true, help: 'What to add, without separator; - reads standard input' },
    'if-match': { value: 'wmk', help: 'Only if this is still the head' },
  },
  examples: [
    "append mem_01JZ8QK3V5M9T2X7R4N6P0B1CD --text ' And butter.'",
    'tail -1 log.txt | mem append mem_01JZ8QK3V5M9T2X7R4N6P0B1CD --text -',
  ],
  async run(context, { mem, text, 'if-match': ifMatch }) {
    const { client, workspace } = connectWorkspace(context)
    const content = await readContent(context.io, text, undefined)
    const result = await client.append(workspace, mem, { content }, ifMatch)
    await context.output.answer(result, () => [
      [result.memory_id, result.watermark, `${counted(result.cells_added, 'new Cell')}, ${result.cells_skipped} kept`],
    ])
  },
})
