import type * as z from 'zod'
import { canonicalJson } from '../../base/canonical-json.ts'
import type { Change } from '../change.ts'
import { conflict, invalid } from '../errors.ts'
import type { AgentDefinition } from '../model/definition.ts'
import type { AgentDeployment, installAgent as schema } from '../model/deployment.ts'
import type { Creation } from '../model/fields.ts'
import { findRecord, lockRecord } from '../store/records.ts'
import { agents } from './agents.ts'
import { checkManifest, registerDefinition, scopedId } from './definitions.ts'
import { actorOf, refuseAgent, refuseFinal } from './family.ts'
import { checkMove } from './replace.ts'
import { saveStep, withVersion } from './step.ts'

type Request = z.infer<typeof schema>

export interface Installation {
  definition: AgentDefinition
  deployment: AgentDeployment
  /** Whether version or deployment are new. */
  isNew: boolean
  /** All was so already. */
  replayed: boolean
}

const ID_MAX = 256

/**
 * Registers a version of an agent and makes it run: creates the deployment, or brings the one that is there to what was sent.
 * One that is there keeps its health, and its state unless another is asked for.
 * @throws invalid for a manifest that contradicts itself, and bounds wider than its; forbidden for an agent; conflict when the
 * version has other content, or the deployment runs another definition, elsewhere, or is retired. Contract: kernel-1.md 11
 */
export async function installAgent(change: Change, body: Request, creation: Creation): Promise<Installation> {
  const { scope, tx } = change
  const { manifest, deployment: sent, reason } = body
  const actor = actorOf(change.by, body)
  refuseAgent(actor)
  const id = scopedId(scope, manifest.id)
  if (id.length > ID_MAX) throw invalid(`manifest.id: ${id} has more than ${ID_MAX} characters`)
  checkManifest(agents, manifest)
  const { definition, isNew } = await registerDefinition(change, 'agent', { ...manifest, id })
  const before =
    (await findRecord(tx, agents.deployments, scope, sent.id)) &&
    (await lockRecord(tx, agents.deployments, scope, sent.id))
  const next = before ? converged(before, definition, body) : created(change, definition, body, creation)
  if (before && canonicalJson(before) === canonicalJson(next)) {
    return { definition, deployment: before, isNew: false, replayed: true }
  }
  if (before) checkMove(agents, before, next)
  await agents.checkFit(change, { deployment: next, definition })
  const changeKind = before?.activeVersion === next.activeVersion ? 'configuration-updated' : 'activated'
  const { deployment } = await saveStep(change, agents, {
    ...(before && { before }),
    next,
    definition,
    changeKind,
    actor,
    reason,
  })
  return { definition, deployment, isNew: isNew || !before, replayed: false }
}

function created(
  { scope, at }: Change,
  definition: AgentDefinition,
  { deployment: { scope: _, id, ...configuration }, endpointIds }: Request,
  creation: Creation,
): AgentDeployment {
  return {
    scope,
    id,
    revision: 1,
    createdAt: at,
    updatedAt: at,
    ...creation,
    definitionId: definition.id,
    activeVersion: definition.version,
    rolloutStatus: 'active',
    ...configuration,
    ...(endpointIds && { endpointIds }),
  }
}

function converged(
  before: AgentDeployment,
  definition: AgentDefinition,
  { deployment: { scope: _, health: _health, ...configuration }, endpointIds }: Request,
): AgentDeployment {
  refuseFinal(agents, before)
  if (before.definitionId !== definition.id) {
    throw conflict(`agent deployment ${before.id} runs ${before.definitionId}: install ${definition.id} as another one`)
  }
  const place = ({ environment, placement }: Pick<AgentDeployment, 'environment' | 'placement'>): string =>
    canonicalJson({ environment, placement })
  if (place(before) !== place(configuration)) {
    throw conflict(`agent deployment ${before.id} has another environment or placement: deploy to it as another one`)
  }
  const { displayName: _name, endpointIds: _endpoints, ...kept } = withVersion<'agent'>(before, definition.version)
  const { rolloutStatus = before.rolloutStatus } = configuration
  const isDegraded = before.rolloutStatus === 'degraded' && rolloutStatus === 'active'
  return {
    ...kept,
    ...configuration,
    ...(endpointIds && { endpointIds }),
    rolloutStatus: isDegraded ? 'degraded' : rolloutStatus,
  }
}
