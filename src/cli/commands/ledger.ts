import { ORDERS } from '../choices.ts'
import { defineCommand, PAGE_FLAGS } from '../command.ts'
import { connectWorkspace } from '../connect.ts'

export const list = defineCommand({
  flags: {
    since: { value: 'time', help: 'From this time on, such as 2026-01-31 or 2026-01-31T12:00:00Z' },
    until: { value: 'time', help: 'Up to this time' },
    actor: { value: 'tag', help: 'Tag of an API key, or console user' },
    agent: { value: 'agent', help: 'What this agent did' },
    memory: { value: 'mem', help: 'What happened to this Memory' },
    edge: { value: 'edg', help: 'What happened to this Edge' },
    op: { value: 'a,b', help: 'Only these operations, such as imprint,forget' },
    order: { value: 'order', choices: ORDERS, help: 'Newest first (desc) or oldest first (asc)' },
    ...PAGE_FLAGS,
  },
  notes: 'With --order asc, repeating from the last entry (--cursor <lg_…>) follows the ledger.',
  examples: ['ledger list --limit 20', 'ledger list --op forget --since 2026-01-01 --output jsonl'],
  async run(context, { agent, memory, edge, ...query }) {
    const { client, workspace } = connectWorkspace(context)
    const answer = await client.ledgerQuery(workspace, { ...query, agent_id: agent, memory_id: memory, edge_id: edge })
    await context.output.list(answer, answer.entries, (entry) => [
      entry.ledger_id,
      entry.ts,
      entry.op,
      entry.target,
      entry.agent_id,
    ])
  },
})
