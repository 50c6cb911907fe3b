import { canonicalJson } from '../../base/canonical-json.ts'
import { optional } from '../../database/rows.ts'
import { boundedBy } from '../budgets.ts'
import { invalid } from '../errors.ts'
import { RISKS } from '../model/action.ts'
import type { BudgetPolicy } from '../model/budget.ts'
import type { Manifests } from '../model/definition.ts'
import type { AgentDeployment } from '../model/deployment.ts'
import { exceeds } from '../policy.ts'
import { agentDeployments } from '../store/deployments.ts'
import { setSlot } from '../store/slots.ts'
import type { RegistryFamily } from './family.ts'
import { takesRuns } from './resolve.ts'

type Manifest = Manifests['agent']

/** What is an agent's own among the rules of the registry. Contract: kernel-1.md 11 */
export const agents: RegistryFamily<'agent'> = {
  name: 'agent',
  deployments: agentDeployments,
  moves: {
    pending: ['active', 'paused', 'retired'],
    active: ['paused', 'retired'],
    degraded: ['paused', 'retired'],
    paused: ['active', 'retired'],
    retired: [],
  },
  stateOf: ({ rolloutStatus }) => rolloutStatus,
  frozen: [
    'scope',
    'definitionId',
    'activeVersion',
    'previousVersion',
    'revision',
    'createdAt',
    'updatedAt',
    'activation',
    'endpointIds',
    'idempotencyKeyHash',
    'creationFingerprint',
  ],
  replaced: ({ displayName: _, ...kept }, given) => ({ ...kept, ...given }),
  flaw({ authority, skillRequirements }) {
    const required = new Set(skillRequirements.map(({ skillId }) => skillId))
    const stranger = authority.allowedSkillIds.find((id) => !required.has(id))
    return stranger && `authority.allowedSkillIds: ${stranger} is not among skillRequirements`
  },
  async checkFit(_change, { deployment, definition, before }) {
    if (before && canonicalJson(bounds(before)) === canonicalJson(bounds(deployment))) return
    const [wider] = widerThan(deployment, definition)
    if (wider !== undefined) {
      throw invalid(`${wider} must not be wider than in definition ${definition.id} ${definition.version}`)
    }
  },
  widens: (base, candidate) =>
    exceeds(candidate.authority.maximumRisk, base.authority.maximumRisk) ||
    asksFrom(candidate) > asksFrom(base) ||
    candidate.authority.maxConcurrentRuns > base.authority.maxConcurrentRuns ||
    allowsMore(candidate.authority.allowedSkillIds, base.authority.allowedSkillIds) ||
    hasNew(skillsOf(candidate), skillsOf(base)),
  saved: ({ tx, scope }, deployment, { authority }) =>
    setSlot(tx, scope, {
      ...optional('maxQueued', deployment.capacity.maxQueuedRuns),
      kind: 'agent',
      name: deployment.id,
      capacity: Math.min(
        deployment.capacity.maxConcurrentRuns,
        deployment.restrictions.maxConcurrentRuns ?? Infinity,
        authority.maxConcurrentRuns,
      ),
      closed: !takesRuns(deployment),
    }),
}

const bounds = ({ restrictions, capacity }: AgentDeployment): object => ({ restrictions, capacity })

/** What of a deployment goes beyond its definition. */
function widerThan({ restrictions, capacity }: AgentDeployment, { authority }: Manifest): string[] {
  const { maximumRisk, allowedSkillIds = [], maxConcurrentRuns = 0, budgetCeilings = {} } = restrictions
  const wider: Record<string, boolean> = {
    'restrictions.maximumRisk': maximumRisk !== undefined && exceeds(maximumRisk, authority.maximumRisk),
    'restrictions.allowedSkillIds':
      authority.allowedSkillIds.length > 0 && hasNew(allowedSkillIds, authority.allowedSkillIds),
    'restrictions.maxConcurrentRuns': maxConcurrentRuns > authority.maxConcurrentRuns,
    'restrictions.budgetCeilings': isAbove(budgetCeilings, authority.budgetCeilings),
    'capacity.maxConcurrentRuns': capacity.maxConcurrentRuns > authority.maxConcurrentRuns,
  }
  return Object.keys(wider).filter((field) => wider[field])
}

const isAbove = (limits: BudgetPolicy, ceilings: BudgetPolicy): boolean =>
  boundedBy(limits).some(({ dimension, limit }) => limit > (ceilings[dimension] ?? Infinity))

/** The risk from which on people are asked, by rank: behind all where they never are. */
const asksFrom = ({ authority: { requireApprovalAt } }: Manifest): number =>
  requireApprovalAt === undefined ? RISKS.length : RISKS.indexOf(requireApprovalAt)

const skillsOf = ({ skillRequirements }: Manifest): string[] => skillRequirements.map(({ skillId }) => skillId)

const hasNew = (candidate: readonly string[], base: readonly string[]): boolean =>
  candidate.some((id) => !base.includes(id))

/** A list without entries allows every skill. */
const allowsMore = (candidate: readonly string[], base: readonly string[]): boolean =>
  base.length > 0 && (candidate.length === 0 || hasNew(candidate, base))
