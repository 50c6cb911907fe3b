import { canonicalJson } from '../../base/canonical-json.ts'
import { sha256 } from '../../base/hash.ts'
import type { Change } from '../change.ts'
import { conflict, expectRevision, forbidden, invalid } from '../errors.ts'
import type { Manifests } from '../model/definition.ts'
import type { Amendment } from '../model/deployment.ts'
import type { Creation } from '../model/fields.ts'
import { findDefinition, type Definition, type FamilyName } from '../store/definitions.ts'
import { amendments } from '../store/deployments.ts'
import { insertRecord, lockRecord } from '../store/records.ts'
import { checkManifest, scopedId } from './definitions.ts'
import { actorOf, readDefinition, refuseFinal, type RegistryFamily } from './family.ts'

export interface ProposeRequest<F extends FamilyName> {
  candidate: Manifests[F]
  proposerType: string
  proposerId: string
  rationale: string
  evidenceRefs: string[]
  expectedDeploymentRevision?: number
}

/**
 * Proposes the next version of what a deployment runs. What it may change, and who decides, is in the version that runs.
 * @throws not_found; forbidden for an agent that may not propose, fields that may not change, or more rights where nobody
 * could approve them; conflict when the deployment is final or at another revision, or the version is used; invalid for another
 * definition or nothing new. Contract: kernel-1.md 11
 */
export async function proposeAmendment<F extends FamilyName>(
  change: Change,
  family: RegistryFamily<F>,
  deploymentId: string,
  request: ProposeRequest<F>,
  creation: Creation,
): Promise<Amendment<Manifests[F]>> {
  const { tx, scope, at, context } = change
  const { rationale, evidenceRefs, expectedDeploymentRevision } = request
  const deployment = await lockRecord(tx, family.deployments, scope, deploymentId)
  const base = await readDefinition(tx, family.name, scope, {
    id: deployment.definitionId,
    version: deployment.activeVersion,
  })
  const proposer = actorOf(change.by, { actorType: request.proposerType, actorId: request.proposerId })
  if (proposer.type === 'agent' && !base.amendments.agentMayPropose) {
    throw forbidden(`agents may not propose amendments of ${base.id} ${base.version}`)
  }
  refuseFinal(family, deployment)
  if (expectedDeploymentRevision !== undefined) expectRevision(expectedDeploymentRevision, deployment.revision)
  const candidate = await checkCandidate(change, family, base, request.candidate)
  const changes = changedFields(base, candidate)
  const riskWidening = family.widens(base, candidate)
  checkAllowed(base, changes, riskWidening)
  return insertRecord(tx, amendments(family.name), {
    scope,
    id: context.newId(),
    revision: 1,
    createdAt: at,
    updatedAt: at,
    ...creation,
    deploymentId,
    definitionId: base.id,
    baseVersion: base.version,
    baseDigest: base.digest,
    candidate,
    changes,
    riskWidening,
    proposerType: proposer.type,
    proposerId: proposer.id,
    rationale,
    evidenceRefs,
    status: base.evaluations.length > 0 ? 'evaluating' : afterEvaluation(base, riskWidening),
    evaluations: [],
  })
}

/** Where an amendment goes once its criteria, if any, are met. */
export const afterEvaluation = (
  { amendments: { requiresApproval } }: Manifests[FamilyName],
  riskWidening: boolean,
): 'awaiting_approval' | 'ready' => (requiresApproval || riskWidening ? 'awaiting_approval' : 'ready')

async function checkCandidate<F extends FamilyName>(
  { tx, scope }: Change,
  family: RegistryFamily<F>,
  base: Definition<F>,
  candidate: Manifests[F],
): Promise<Manifests[F]> {
  if (![candidate.id, scopedId(scope, candidate.id)].includes(base.id)) {
    throw invalid(`candidate.id: ${candidate.id} is not the ${base.id} that the deployment runs`)
  }
  checkManifest(family, candidate)
  if (await findDefinition(tx, family.name, scope, base.id, candidate.version)) {
    throw conflict(`${family.name} definition ${base.id} version ${candidate.version} exists: use a new version`)
  }
  return { ...candidate, id: base.id }
}

/** Of no manifest's own, and what makes a version one. */
const IDENTITY = new Set(['id', 'version', 'scope', 'digest', 'createdAt'])

/** The fields of a manifest that a candidate changes. @throws invalid when it changes none */
function changedFields(base: Definition<FamilyName>, candidate: Manifests[FamilyName]): Amendment['changes'] {
  const before = new Map<string, unknown>(Object.entries(base))
  const after = new Map<string, unknown>(Object.entries(candidate))
  const changes = [...new Set([...before.keys(), ...after.keys()])]
    .filter((field) => !IDENTITY.has(field))
    .map((field) => ({ field, beforeDigest: digest(before.get(field)), afterDigest: digest(after.get(field)) }))
    .filter(({ beforeDigest, afterDigest }) => beforeDigest !== afterDigest)
  if (changes.length === 0) throw invalid('candidate: it changes nothing but the version')
  return changes
}

const digest = (value: unknown): string => sha256(canonicalJson(value ?? null))

/** @throws forbidden when the version that runs does not let itself be changed so */
function checkAllowed(
  { amendments: { allowedFields, approverPrincipals } }: Manifests[FamilyName],
  changes: Amendment['changes'],
  riskWidening: boolean,
): void {
  const outside = changes.find(({ field }) => !allowedFields.includes(field))
  if (outside) throw forbidden(`amendments may not change ${outside.field}`)
  if (riskWidening && approverPrincipals.length === 0) {
    throw forbidden('the candidate may do more, and the definition names nobody who could approve that')
  }
}
