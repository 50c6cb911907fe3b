import type { Logger } from 'pino'
import type { Attribution } from '../change.ts'
import { forbidden } from '../errors.ts'
import type { Party } from '../model/fields.ts'
import type { ApprovalAuthorizer, Authorization } from '../ports.ts'

const isSame = (a: Party, b: Party): boolean => a.type === b.type && a.id === b.id

/**
 * Who is named among the eligible approvers may decide; with a host that knows who asks, nobody in the name of another. Of
 * amendments the definition itself names who may decide. Contract: kernel-1.md 13
 */
export const createDefaultAuthorizer = (): ApprovalAuthorizer => ({
  authorize({ subject, principal, hostIdentity }) {
    if (hostIdentity && !isSame(hostIdentity, principal)) return 'deny'
    if (subject.kind === 'amendment') return 'allow'
    return subject.approval.eligibleApprovers.some((approver) => isSame(approver, principal)) ? 'allow' : 'deny'
  },
})

/**
 * Asks whether the principal may decide; an authorizer that fails refuses. Before the transaction: it may ask others.
 * @throws forbidden. Contract: kernel-1.md 13
 */
export async function requireConsent(
  { approvalAuthorizer: authorizer, log }: { approvalAuthorizer: ApprovalAuthorizer; log: Pick<Logger, 'error'> },
  asked: Omit<Authorization, 'hostIdentity'>,
  by: Attribution,
): Promise<void> {
  const { subject, principal } = asked
  const about =
    subject.kind === 'approval' ? `action approval ${subject.approval.id}` : `amendment ${subject.amendment.id}`
  const verdict = await Promise.resolve()
    .then(() => authorizer.authorize({ ...asked, ...(by.actorSource === 'host' && { hostIdentity: by.actor }) }))
    .catch((error: unknown) => {
      log.error({ err: error }, `the approval authorizer failed over ${about}`)
      return 'deny' as const
    })
  if (verdict !== 'allow') throw forbidden(`${principal.type}:${principal.id} may not decide ${about}`)
}
