import { randomUUID } from 'node:crypto'
import type { ActionCall, Approval } from '../../client/kernel/kernel-types.ts'
import { canAsk, confirm } from '../ask.ts'
import { defineCommand } from '../command.ts'
import { CliError, EXIT, usageError } from '../exit.ts'
import { connectKernel, KERNEL_FLAGS, LIST_FLAGS, parseParty, partyText } from '../kernel/connect.ts'
import { approvalRow, showPage } from '../kernel/show.ts'
import { excerpt, plain, type Row } from '../output.ts'

/** Contract: kernel-2.md 17. */

const STATES = ['pending', 'approved', 'rejected', 'changes_requested', 'expired', 'canceled'] as const

export const list = defineCommand({
  flags: {
    ...KERNEL_FLAGS,
    ...LIST_FLAGS,
    status: { value: 'states', list: true, choices: STATES, help: 'In these states (pending)' },
    run: { value: 'run', help: 'Of this run' },
  },
  notes: 'Those that wait, the oldest first.',
  examples: ['approvals list', 'approvals list --status approved,rejected'],
  async run(context, { status, run, limit, cursor, ...input }) {
    const page = await connectKernel(context, input).approvals.list({
      status: status ?? ['pending'],
      ...(run !== undefined && { runId: run }),
      ...(limit !== undefined && { limit }),
      ...(cursor !== undefined && { cursor }),
    })
    await showPage(context, page, approvalRow)
  },
})

export const show = defineCommand({
  args: { id: { help: 'Approval' } },
  flags: KERNEL_FLAGS,
  examples: ['approvals show 019cad8f-ac00-700a-8793-2bcb6ffdf06f'],
  async run(context, { id, ...input }) {
    const client = connectKernel(context, input)
    const approval = await client.approvals.get(id)
    const call = await client.actionCalls.get(approval.actionCallId)
    await context.output.answer({ approval, call }, () => [approvalRow(approval), ...details(approval, call)])
  },
})

/** What will be done, with what, where, and who may say so. */
function details(approval: Approval, call: ActionCall): Row[] {
  const { destinations, policyReason, eligibleApprovers, decisionBy, decisionReason } = approval
  return [
    ['action', `${call.skillId}@${call.skillVersion} ${call.action}`],
    ['arguments', plain(JSON.stringify(call.arguments))],
    ['risk', `${approval.risk}, side effect ${call.sideEffect}`],
    [
      'to',
      destinations.length > 0 ? destinations.map(({ endpointId }) => endpointId).join(', ') : 'no destination named',
    ],
    ['approvers', eligibleApprovers.map(partyText).join(', ')],
    ...(policyReason === undefined ? [] : [['why asked', excerpt(policyReason, 500)]]),
    ['run', approval.runId],
    ['until', `${approval.expiresAt}, then ${approval.timeoutDecision}`],
    ...(decisionBy ? [['decided by', partyText(decisionBy), decisionReason]] : []),
  ]
}

export const decide = defineCommand({
  args: {
    id: { help: 'Approval' },
    decision: { choices: ['approve', 'reject', 'request_changes'], help: 'What to say' },
  },
  flags: {
    ...KERNEL_FLAGS,
    reason: { value: 'text', help: 'Why; request_changes must say what to change' },
    principal: { value: 'type:id', default: 'user:local', help: 'Who decides' },
    'decision-id': { value: 'id', help: 'Of this decision, to repeat it safely (a random UUID)' },
    yes: { short: 'y', help: 'Do not ask' },
  },
  notes: 'Shows what will happen, and asks on a terminal; anywhere else --yes must stand.',
  examples: [
    'approvals decide 019cad8f-ac00-700a-8793-2bcb6ffdf06f approve',
    "approvals decide 019cad8f-ac00-700a-8793-2bcb6ffdf06f request_changes --reason 'To Pia alone' --yes",
  ],
  async run(context, { id, decision, reason, principal, yes, 'decision-id': decisionId = randomUUID(), ...input }) {
    if (decision === 'request_changes' && reason === undefined) {
      throw usageError('request_changes needs a reason', 'Say what to change: --reason <text>')
    }
    if (!yes && !canAsk(context.io)) {
      throw usageError('nobody can be asked here', 'Pass --yes once `mem approvals show` says what you want.')
    }
    const actor = parseParty('principal', principal)
    const client = connectKernel(context, input)
    const approval = await client.approvals.get(id)
    const call = await client.actionCalls.get(approval.actionCallId)
    for (const row of details(approval, call)) context.output.note(row.filter((part) => part !== undefined).join('  '))
    if (!yes && !(await confirm(context.io, QUESTIONS[decision]))) {
      throw new CliError(EXIT.failure, 'nothing was decided')
    }
    const decided = await client.approvals.decide(id, {
      decision,
      decisionId,
      // The same decision again was made at the revision before it.
      expectedRevision: approval.decisionId === decisionId ? approval.revision - 1 : approval.revision,
      principal: actor,
      actor,
      ...(reason !== undefined && { reason }),
    })
    await context.output.answer(decided, () => [approvalRow(decided.approval), [decided.run.id, decided.run.status]])
  },
})

const QUESTIONS = {
  approve: 'Let this be done?',
  reject: 'Refuse this?',
  request_changes: 'Send this back to be changed?',
} as const
