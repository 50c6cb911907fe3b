import * as z from 'zod'
import { agentsAnswer } from '../answers.ts'
import { agentSchema } from '../model.ts'
import { agentRequest } from '../requests.ts'
import { cursorKey } from '../routes/lists.ts'
import { listAgents } from '../store/agents.ts'
import { fittingPage, pageArguments } from './parts.ts'
import { tool, workspaceId, type Tool } from './tool.ts'

/** Contract: memory.md 12.2. */
export const agentTools: readonly Tool[] = [
  tool(
    {
      name: 'mem_register_agent',
      description:
        'Register an agent, or replace its profile. Not needed to write: an unknown agent_id registers itself. identity_provider is opaque or vendor_session.',
      effect: 'changes',
    },
    agentRequest.extend({ workspace_id: workspaceId }),
    agentSchema,
    async (call, { workspace_id, ...request }) => {
      const { workspace, caller } = await call.write(workspace_id)
      return call.service.agents.register(caller, workspace.id, request)
    },
  ),
  tool(
    { name: 'mem_list_agents', description: 'List the agents of a workspace, newest first.', effect: 'reads' },
    z.strictObject({ workspace_id: workspaceId, ...pageArguments }),
    agentsAnswer,
    async (call, { workspace_id, limit, cursor }) => {
      const { id } = await call.workspace(workspace_id)
      const before = cursorKey(cursor, [0, ''] as const)
      const { items, rest } = await fittingPage(limit, 100, 1000, (most) =>
        listAgents(call.service.seams.metadata, id, most, before),
      )
      return { agents: items, ...rest }
    },
  ),
]
