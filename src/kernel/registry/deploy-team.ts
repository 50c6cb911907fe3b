import type * as z from 'zod'
import type { Change } from '../change.ts'
import type { deployTeam as schema } from '../model/deployment.ts'
import type { Creation } from '../model/fields.ts'
import { actorOf, readDefinition, refuseAgent } from './family.ts'
import { saveStep, type Stepped } from './step.ts'
import { teams } from './teams.ts'

/**
 * Deploys a registered version of a team.
 * @throws not_found for an unknown version or agent; invalid for a roster or restrictions that do not fit it; forbidden for
 * an agent; conflict when the deployment is there already. Contract: kernel-1.md 12
 */
export async function deployTeam(
  change: Change,
  body: z.infer<typeof schema>,
  creation: Creation,
): Promise<Stepped<'team'>> {
  const { scope, tx, at } = change
  const { scope: _, id, ...fields } = body.deployment
  const definition = await readDefinition(tx, 'team', scope, { id: fields.definitionId, version: fields.activeVersion })
  const actor = actorOf(change.by, body)
  refuseAgent(actor)
  const next = { scope, id, revision: 1, createdAt: at, updatedAt: at, ...creation, ...fields }
  await teams.checkFit(change, { deployment: next, definition })
  return saveStep(change, teams, { next, definition, changeKind: 'activated', actor, reason: body.reason })
}
