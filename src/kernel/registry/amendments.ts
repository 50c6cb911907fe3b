import { requireConsent } from '../actions/authorizer.ts'
import type { Attribution, Change } from '../change.ts'
import type { KernelContext } from '../context.ts'
import { conflict, expectRevision, forbidden, invalid } from '../errors.ts'
import type { Manifests } from '../model/definition.ts'
import type { Amendment } from '../model/deployment.ts'
import type { Party, Scope } from '../model/fields.ts'
import type { Definition, FamilyName } from '../store/definitions.ts'
import { amendments, readAmendment } from '../store/deployments.ts'
import { lockRecord, saveRecord } from '../store/records.ts'
import { registerDefinition } from './definitions.ts'
import { actorOf, readDefinition, refuseFinal, type RegistryFamily } from './family.ts'
import { afterEvaluation } from './propose.ts'
import { saveStep, withVersion, type StepRequest, type Stepped } from './step.ts'

/** What comes after a proposal, in this order: evaluation, decision, activation. Contract: kernel-1.md 11, 12 */

/** Of the path. */
export interface AmendmentPath {
  deploymentId: string
  id: string
}

type Amended<F extends FamilyName> = Amendment<Manifests[F]>

/** Reads what this step moves. @throws not_found; conflict in another state, or at another revision */
async function openAmendment<F extends FamilyName>(
  { tx, scope }: Change,
  family: RegistryFamily<F>,
  path: AmendmentPath,
  { from, expectedRevision }: { from: readonly Amendment['status'][]; expectedRevision: number },
): Promise<Amended<F>> {
  const amendment = await readAmendment(tx, family.name, scope, { ...path, lock: true })
  if (!from.includes(amendment.status)) {
    throw conflict(`amendment ${path.id} is ${amendment.status}: this needs one that is ${from.join(' or ')}`)
  }
  expectRevision(expectedRevision, amendment.revision)
  return amendment
}

const readBase = <F extends FamilyName>(
  db: Change['tx'],
  family: RegistryFamily<F>,
  { scope, definitionId, baseVersion }: Amended<F>,
): Promise<Definition<F>> => readDefinition(db, family.name, scope, { id: definitionId, version: baseVersion })

/**
 * Writes down how a candidate met the criteria of the version that it is to follow.
 * @throws invalid for an unknown criterion, or when a required one is missing. Contract: kernel-1.md 11
 */
export async function evaluateAmendment<F extends FamilyName>(
  change: Change,
  family: RegistryFamily<F>,
  path: AmendmentPath,
  { expectedRevision, evaluations }: { expectedRevision: number; evaluations: Amendment['evaluations'] },
): Promise<Amended<F>> {
  const { tx, now } = change
  const amendment = await openAmendment(change, family, path, { from: ['evaluating'], expectedRevision })
  const base = await readBase(tx, family, amendment)
  const unknown = evaluations.find(({ criterionId }) => base.evaluations.every(({ id }) => id !== criterionId))
  if (unknown) throw invalid(`${unknown.criterionId} is no criterion of ${base.id} ${base.version}`)
  const required = base.evaluations.filter((criterion) => criterion.required === true)
  const results = new Map(evaluations.map(({ criterionId, passed }) => [criterionId, passed]))
  const missing = required.find(({ id }) => !results.has(id))
  if (missing) throw invalid(`the required criterion ${missing.id} is not evaluated`)
  const hasFailed = required.some(({ id }) => results.get(id) === false)
  const status = hasFailed ? 'evaluation_failed' : afterEvaluation(base, amendment.riskWidening)
  return saveRecord(tx, amendments(family.name), { ...amendment, evaluations, status }, now)
}

export interface DecideRequest {
  expectedRevision: number
  approved: boolean
  actorType: string
  actorId: string
  reason?: string
}

/**
 * Whether who decides may: the version that runs names them, and an authorizer, where there is one, is asked too. Before the
 * transaction: it may ask others. @throws not_found, forbidden. Contract: kernel-1.md 11, 13
 */
export async function authorizeDecision<F extends FamilyName>(
  { store, approvalAuthorizer, log }: KernelContext,
  family: RegistryFamily<F>,
  { scope, path, body, by }: { scope: Scope; path: AmendmentPath; body: DecideRequest; by: Attribution },
): Promise<void> {
  const amendment = await readAmendment(store.database, family.name, scope, path)
  const base = await readBase(store.database, family, amendment)
  const principal = actorOf(by, body)
  if (!isApprover(base, principal)) {
    throw forbidden(`${principal.type}:${principal.id} is no approver of ${base.id} ${base.version}`)
  }
  if (principal.type === 'agent' && amendment.proposerType === 'agent' && amendment.proposerId === principal.id) {
    throw forbidden('an agent may not decide on its own proposal')
  }
  if (!approvalAuthorizer) return
  const decision = body.approved ? 'approve' : 'reject'
  await requireConsent(
    { approvalAuthorizer, log },
    { subject: { kind: 'amendment', amendment }, decision, principal },
    by,
  )
}

/** Types hold no colon, so that no principal can be read in two ways. */
const isApprover = ({ amendments: { approverPrincipals } }: Manifests[FamilyName], { type, id }: Party): boolean =>
  !type.includes(':') && approverPrincipals.includes(`${type}:${id}`)

/** Approves or rejects; `authorizeDecision` comes before it. Contract: kernel-1.md 11 */
export async function decideAmendment<F extends FamilyName>(
  change: Change,
  family: RegistryFamily<F>,
  path: AmendmentPath,
  request: DecideRequest,
): Promise<Amended<F>> {
  const { expectedRevision, approved, reason } = request
  const amendment = await openAmendment(change, family, path, { from: ['awaiting_approval'], expectedRevision })
  const { type: actorType, id: actorId } = actorOf(change.by, request)
  const decision = { approved, actorType, actorId, ...(reason !== undefined && { reason }), decidedAt: change.at }
  const status = approved ? 'approved' : 'rejected'
  return saveRecord(change.tx, amendments(family.name), { ...amendment, decision, status }, change.now)
}

/**
 * Registers the candidate and makes it run: T13.
 * @throws conflict when it is not approved or ready, its base runs no more, the deployment is final, or the version is used by
 * now; of a team, invalid when the roster does not fit it. Contract: kernel-1.md 11, 14.4
 */
export async function activateAmendment<F extends FamilyName>(
  change: Change,
  family: RegistryFamily<F>,
  path: AmendmentPath,
  request: StepRequest,
): Promise<Stepped<F> & { amendment: Amended<F> }> {
  const { tx, scope, now } = change
  const { expectedRevision, reason } = request
  const before = await lockRecord(tx, family.deployments, scope, path.deploymentId)
  const amendment = await openAmendment(change, family, path, { from: ['ready', 'approved'], expectedRevision })
  refuseFinal(family, before)
  if (before.activeVersion !== amendment.baseVersion) {
    throw conflict(`the amendment changes version ${amendment.baseVersion}, and ${before.activeVersion} runs by now`)
  }
  const { definition, isNew } = await registerDefinition(change, family.name, amendment.candidate)
  if (!isNew) throw conflict(`version ${definition.version} of ${definition.id} was registered meanwhile`)
  const next = withVersion(before, definition.version)
  await family.checkFit(change, { deployment: next, definition, before })
  const actor = actorOf(change.by, request)
  const stepped = await saveStep(change, family, { before, next, definition, changeKind: 'amended', actor, reason })
  const activated = { ...amendment, status: 'activated' as const, activationId: stepped.activation.id }
  return { ...stepped, amendment: await saveRecord(tx, amendments(family.name), activated, now) }
}
