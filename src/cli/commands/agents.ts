import type { Agent } from '../../client/types.ts'
import { defineCommand, PAGE_FLAGS } from '../command.ts'
import { connectWorkspace } from '../connect.ts'
import { usageError } from '../exit.ts'
import type { Row } from '../output.ts'

const AGENT_ARGUMENT = { id: { optional: true, help: 'Agent id; the same as --agent-id' } } as const
const AGENT_FLAG = { 'agent-id': { value: 'agent', help: 'The agent in question' } } as const

const row = (agent: Agent): Row => [
  agent.agent_id,
  agent.display_name,
  agent.identity_provider,
  agent.active ? 'active' : 'inactive',
  agent.last_seen_at,
]

export const list = defineCommand({
  flags: PAGE_FLAGS,
  examples: ['agents list'],
  async run(context, page) {
    const { client, workspace } = connectWorkspace(context)
    const answer = await client.listAgents(workspace, page)
    await context.output.list(answer, answer.agents, row)
  },
})

export const show = defineCommand({
  args: AGENT_ARGUMENT,
  flags: AGENT_FLAG,
  notes: 'Without an id: the agent that the command line acts as.',
  examples: ['agents show agent_docs', 'agents show --agent-id agent_docs --output json'],
  async run(context, { id, 'agent-id': flag }) {
    const { client, workspace } = connectWorkspace(context)
    const agent = await client.getAgent(workspace, id ?? flag ?? context.settings.agentId)
    await context.output.answer(agent, () => [row(agent)])
  },
})

export const register = defineCommand({
  args: AGENT_ARGUMENT,
  flags: {
    ...AGENT_FLAG,
    provider: { value: 'name', default: 'opaque', help: 'Identity provider' },
    'display-name': { value: 'name', help: 'Name for people' },
  },
  notes: 'Without an id: the agent that the command line acts as. Registered again, it gets the new profile.',
  examples: ["agents register agent_docs --display-name 'Documentation'", 'agents register --agent-id agent_docs'],
  async run(context, { id, 'agent-id': flag, provider, 'display-name': displayName }) {
    const { client, workspace } = connectWorkspace(context)
    const agent = await client.registerAgent(workspace, {
      agent_id: id ?? flag ?? context.settings.agentId,
      identity_provider: provider,
      display_name: displayName,
    })
    await context.output.answer(agent, () => [row(agent)])
  },
})

export const deactivate = defineCommand({
  args: AGENT_ARGUMENT,
  flags: AGENT_FLAG,
  examples: ['agents deactivate agent_docs'],
  async run(context, { id, 'agent-id': flag }) {
    const agent = id ?? flag
    if (agent === undefined) throw usageError('which agent?', 'Name it: mem agents deactivate <agent>')
    const { client, workspace } = connectWorkspace(context)
    await client.deactivateAgent(workspace, agent)
    context.output.done(agent, 'deactivated')
  },
})
