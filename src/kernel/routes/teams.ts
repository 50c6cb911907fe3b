import { registerTeam } from '../model/definition.ts'
import { deployTeam, proposeTeamAmendment, replaceTeamDeployment, TEAM_STATES } from '../model/deployment.ts'
import { version } from '../model/fields.ts'
import { notFound } from '../errors.ts'
import { checkManifest, registerDefinition } from '../registry/definitions.ts'
import { deployTeam as deploy } from '../registry/deploy-team.ts'
import { readDefinition } from '../registry/family.ts'
import { teams } from '../registry/teams.ts'
import { listDefinitions } from '../store/definitions.ts'
import { deploymentRoutes, stepped, stepReplay } from './deployments.ts'
import { read, write } from './handlers.ts'
import type { Handlers } from './route.ts'

/** Contract: kernel-1.md 12 */
export const teamRoutes: Handlers = {
  ...deploymentRoutes(teams, { states: TEAM_STATES, replace: replaceTeamDeployment, propose: proposeTeamAmendment }),
  'POST /team-definitions': write(
    registerTeam,
    {
      replay: ({ context, scope, query }) => readDefinition(context.store.database, 'team', scope, query),
    },
    async ({ change, body: { scope: _, actor: _actor, ...manifest } }) => {
      checkManifest(teams, manifest)
      const { definition, isNew } = await registerDefinition(change, 'team', manifest)
      return { recordId: definition.id, status: isNew ? 201 : 200, answer: () => definition }
    },
  ),
  'GET /team-definitions/{id}': read(
    { version: version.exactOptional() },
    async ({ context, scope, params: { id = '' }, query }) => {
      const { database } = context.store
      if (query.version !== undefined) return readDefinition(database, 'team', scope, { id, version: query.version })
      const versions = await listDefinitions(database, 'team', scope, id)
      if (versions.length === 0) throw notFound('team definition', id)
      return versions
    },
  ),
  'POST /team-deployments': write(
    deployTeam,
    {
      scopes: ({ deployment }) => [deployment.scope],
      replay: ({ context, scope, query: { deployment } }, revision) =>
        stepReplay(teams)({ context, scope, params: { id: deployment.id } }, revision),
    },
    async ({ change, body, creation }) => ({ ...stepped(await deploy(change, body, creation)), status: 201 }),
  ),
}
