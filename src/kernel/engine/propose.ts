import { canonicalJson } from '../../base/canonical-json.ts'
import { clip } from '../../base/clip.ts'
import { sha256 } from '../../base/hash.ts'
import { noteFailure, workOn } from '../actions/failures.ts'
import { recordAction } from '../actions/record.ts'
import type { Change } from '../change.ts'
import type { Run } from '../model/run.ts'
import type { Turn } from '../model/turn.ts'
import { createRequest } from '../requests/create.ts'
import { isDecisionRun } from '../requests/decisions.ts'
import { addResult } from '../runs/results.ts'
import { executorOf } from '../store/slots.ts'
import type { Application } from './apply.ts'
import { openFork } from './forks.ts'
import type { Outcome } from '../model/outcome.ts'

/** What a turn proposes, recorded in the transaction that applies it. Contract: kernel-1.md 14.3, 14.4 */

type Proposal = Pick<Outcome, 'action' | 'fork' | 'delegation' | 'runbookCall'>

export const hasProposal = ({ action, fork, delegation, runbookCall }: Proposal): boolean =>
  (action ?? fork ?? delegation ?? runbookCall) !== undefined

/** The proposal as the turn shows it: without its input. */
export function requestedBy({ action, fork, delegation, runbookCall }: Outcome): Turn['requestedActions'] {
  if (action) {
    const { bindingId, action: capability, summary, evidenceRefs } = action
    return [{ type: 'action', capability, bindingId, summary, evidenceRefs }]
  }
  if (fork) {
    const summary = fork.children.map(({ key }) => key).join(', ')
    return [{ type: 'fork', summary: `Work in ${fork.children.length} runs: ${summary}`, evidenceRefs: [] }]
  }
  if (delegation) return [{ type: delegation.kind, summary: clip(delegation.goal, 1024), evidenceRefs: [] }]
  if (runbookCall) return [{ type: 'runbook_call', summary: `Call ${runbookCall.entrypoint}`, evidenceRefs: [] }]
  return []
}

/** Gives the run in its next state, unsaved. @throws KernelError for what cannot be: the model is told */
export async function propose(change: Change, run: Run, application: Application): Promise<Run> {
  const { turn, outcome, prepared } = application
  const { action, fork, delegation } = outcome
  if (isDecisionRun(run))
    return refuse(change, run, application, 'this run decides and does nothing else: end with the decision')
  if (action) {
    if (prepared) return recordAction(change, run, turn, prepared)
    return refuse(change, run, application, 'only an installed agent can act')
  }
  if (fork) return openFork(change, run, fork)
  if (delegation) {
    const agentId = executorOf(run)
    const requester = agentId === undefined ? run.owner : { type: 'agent', id: agentId }
    const asked = { ...delegation, requester, acceptancePolicy: 'recipient_review' as const, conversationRefs: [] }
    return (await createRequest(change, asked, run)).source
  }
  return refuse(change, run, application, 'runbooks cannot be called here')
}

/** Feeds back that a proposal came to nothing; a run to which that happens too often ends. */
export function refuse(change: Change, run: Run, { turn, outcome }: Application, reason: string): Run {
  const { now, at } = change
  const { action, fork, delegation, runbookCall } = outcome
  const name = requestedBy(outcome)[0]?.type ?? ''
  const digest = sha256(canonicalJson(action ?? fork ?? delegation ?? runbookCall))
  const told = addResult(run, { kind: 'error', id: turn.id, at, status: 'refused', proposal: name, error: reason })
  return workOn(noteFailure(told, { name, digest }), now)
}
