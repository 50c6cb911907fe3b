import type { PatchOperation } from '../../client/types.ts'
import { defineCommand } from '../command.ts'
import { connectWorkspace } from '../connect.ts'
import { usageError } from '../exit.ts'
import { parseJson, readText } from '../input.ts'
import { counted } from '../output.ts'

export const patch = defineCommand({
  args: { mem: { help: 'Memory id (mem_…)' } },
  flags: {
    patch: { value: 'json', help: 'List of {"old_string", "new_string", "replace_all"?}' },
    'patch-file': { value: 'file', help: 'Take the list from a file; - is standard input' },
    'if-match': { value: 'wmk', help: 'Only if this is still the head; else the head is read first' },
  },
  examples: [
    `patch mem_01JZ8QK3V5M9T2X7R4N6P0B1CD --patch '[{"old_string": "rye", "new_string": "wheat"}]'`,
    'patch mem_01JZ8QK3V5M9T2X7R4N6P0B1CD --patch-file changes.json',
  ],
  async run(context, { mem, patch: inline, 'patch-file': file, 'if-match': ifMatch }) {
    const { client, workspace } = connectWorkspace(context)
    if ((inline === undefined) === (file === undefined)) {
      throw usageError('the changes must come from one of --patch and --patch-file')
    }
    const text = inline ?? (await readText(context.io, file ?? '-'))
    const operations = parseJson('the patch', text)
    if (!isPatch(operations)) {
      throw usageError('the patch must be a JSON list of objects with old_string and new_string')
    }
    const watermark = ifMatch ?? (await client.lookup(workspace, mem)).head_watermark
    const result = await client.patch(workspace, mem, { patch: operations }, watermark)
    await context.output.answer(result, () => [
      [result.memory_id, result.watermark, result.ledger_id ? counted(result.patches_applied, 'change') : 'unchanged'],
    ])
  },
})

/** Whether the operations themselves are sound is the server's to say. */
const isPatch = (value: unknown): value is PatchOperation[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'object' && item !== null)
