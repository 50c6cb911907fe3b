import type { Party } from '../model/fields.ts'
import type { ApprovalAuthorizer } from '../ports.ts'

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
