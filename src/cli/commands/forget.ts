import { defineCommand } from '../command.ts'
import { connectWorkspace } from '../connect.ts'
import { counted } from '../output.ts'

export const forget = defineCommand({
  args: { mem: { help: 'Memory id (mem_…)' } },
  flags: { 'redact-audit': { help: 'Also erase what the ledger keeps of it: metadata, address, user agent' } },
  notes: 'Content, versions, tags and Edges are erased; this cannot be undone.',
  examples: ['forget mem_01JZ8QK3V5M9T2X7R4N6P0B1CD', 'forget mem_01JZ8QK3V5M9T2X7R4N6P0B1CD --redact-audit'],
  async run(context, { mem, 'redact-audit': redact }) {
    const { client, workspace } = connectWorkspace(context)
    const result = await client.forget(workspace, mem, redact ? { redact_audit: true } : {})
    await context.output.answer(result, () => [
      [
        result.memory_id,
        'forgotten',
        counted(result.cascaded_edges, 'Edge'),
        result.redacted_entries === undefined ? undefined : `${result.redacted_entries} ledger entries redacted`,
      ],
    ])
    for (const warning of result.warnings ?? []) context.output.note(`warning: ${warning}`)
  },
})
