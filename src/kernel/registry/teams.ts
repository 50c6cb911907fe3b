import { canonicalJson } from '../../base/canonical-json.ts'
import { invalid } from '../errors.ts'
import type { Manifests } from '../model/definition.ts'
import type { TeamDeployment } from '../model/deployment.ts'
import { exceeds } from '../policy.ts'
import { teamDeployments } from '../store/deployments.ts'
import type { RegistryFamily } from './family.ts'
import { checkRoster } from './roster.ts'

type Manifest = Manifests['team']

/** What is a team's own among the rules of the registry. Contract: kernel-1.md 12 */
export const teams: RegistryFamily<'team'> = {
  name: 'team',
  deployments: teamDeployments,
  moves: {
    draft: ['active', 'archived'],
    active: ['paused', 'archived'],
    paused: ['active', 'archived'],
    archived: [],
  },
  stateOf: ({ status }) => status,
  frozen: [
    'scope',
    'definitionId',
    'previousVersion',
    'revision',
    'createdAt',
    'updatedAt',
    'idempotencyKeyHash',
    'creationFingerprint',
  ],
  replaced: (current, given) => ({
    ...current,
    ...given,
    ...(given.activeVersion !== current.activeVersion && { previousVersion: current.activeVersion }),
  }),
  flaw: (manifest) => flaws(manifest)[0],
  async checkFit(change, { deployment, definition, before }) {
    if (before && canonicalJson(fitting(before)) === canonicalJson(fitting(deployment))) return
    const [wider] = widerThan(deployment.restrictions, definition)
    if (wider !== undefined) {
      throw invalid(`${wider} must not be wider than in definition ${definition.id} ${definition.version}`)
    }
    await checkRoster(change, deployment.roster, definition.roles)
  },
  widens: (base, candidate) =>
    exceeds(candidate.approvals.maximumRisk, base.approvals.maximumRisk) ||
    candidate.delegation.maximumDepth > base.delegation.maximumDepth ||
    candidate.delegation.maximumConcurrent > base.delegation.maximumConcurrent ||
    (candidate.sharedContext.allowMemberWrite && !base.sharedContext.allowMemberWrite) ||
    grantsMore(candidate, base),
  saved: async () => {},
}

/** What must fit the definition. */
const fitting = ({ roster, restrictions, activeVersion }: TeamDeployment): object => ({
  roster,
  restrictions,
  activeVersion,
})

/** How a team contradicts itself. */
function flaws({ roles, approvals }: Manifest): string[] {
  const ids = roles.map(({ id }) => id)
  return [
    ...ids.filter((id, i) => ids.indexOf(id) !== i).map((id) => `role ${id} is there twice`),
    ...approvals.approverRoleIds
      .filter((id) => !ids.includes(id))
      .map((id) => `approvals.approverRoleIds: ${id} is no role of the team`),
    ...roles.flatMap(({ id, minimumMembers = 0, maximumMembers = Infinity, skillGrants }) => [
      ...(minimumMembers > maximumMembers ? [`role ${id}: minimumMembers is above maximumMembers`] : []),
      ...skillGrants
        .filter(({ maximumRisk }) => exceeds(maximumRisk, approvals.maximumRisk))
        .map((grant) => `role ${id}: the grant of ${grant.skillId} is above the risk of the team`),
    ]),
  ]
}

/** What of the restrictions goes beyond the definition. */
function widerThan(
  { maximumRisk, maximumConcurrency = 0 }: TeamDeployment['restrictions'],
  { approvals, delegation }: Manifest,
): string[] {
  const wider: Record<string, boolean> = {
    'restrictions.maximumRisk': maximumRisk !== undefined && exceeds(maximumRisk, approvals.maximumRisk),
    'restrictions.maximumConcurrency': maximumConcurrency > delegation.maximumConcurrent,
  }
  return Object.keys(wider).filter((field) => wider[field])
}

/** Whether a role may use a skill or an action that it may not use so far, or at a higher risk. */
const grantsMore = (candidate: Manifest, base: Manifest): boolean =>
  candidate.roles.some(({ id, skillGrants }) => {
    const before = base.roles.find((role) => role.id === id)?.skillGrants ?? []
    return skillGrants.some(
      (grant) =>
        !before.some(
          (granted) =>
            granted.skillId === grant.skillId &&
            !exceeds(grant.maximumRisk, granted.maximumRisk) &&
            grant.allowedActions.every((action) => granted.allowedActions.includes(action)),
        ),
    )
  })
