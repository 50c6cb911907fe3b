import { withBudgetState } from '../budgets.ts'
import type { Change } from '../change.ts'
import type { AgentRequest } from '../model/request.ts'
import type { PendingResult, Run } from '../model/run.ts'
import { isTerminal } from '../run-states.ts'
import { wakeIn } from '../runs/wake.ts'
import { saveRecord } from '../store/records.ts'
import { requests } from '../store/requests.ts'
import { givePlace } from './delegation.ts'
import { report, type Step } from './events.ts'

/** A request and the runs it joins, as saved. */
export interface Stepped {
  request: AgentRequest
  sourceRun: Run
  childRun?: Run
}

const STEPS: Partial<Record<AgentRequest['status'], Step>> = {
  completed: 'completed',
  rejected: 'rejected',
  failed: 'failed',
  canceled: 'canceled',
}

/**
 * Saves a request that was moved to its end, and gives back what it took up. Its source, locked by the caller, gets the result
 * and goes on where it waited for it.
 */
export async function endRequest(
  change: Change,
  ended: AgentRequest,
  source: Run,
  child?: Run,
): Promise<{ request: AgentRequest; sourceRun: Run }> {
  const { tx, now } = change
  const request = await saveRecord(tx, requests, ended, now)
  await givePlace(change, request, source)
  report(change, request, STEPS[request.status] ?? 'canceled', source)
  if (isTerminal(source.status)) return { request, sourceRun: source }
  const result = resultOf(request, child, change.at)
  const told = { ...withoutUnused(source, request), output: withResult(source.output, result) }
  const wake = {
    signalId: `agent_request:${request.id}`,
    type: 'agent_request',
    reference: request.id,
    result,
  } as const
  return { request, sourceRun: await wakeIn(change, told, wake) }
}

/** What was set aside for a run that was never made is free again. */
function withoutUnused(source: Run, { id, childRunId }: AgentRequest): Run {
  if (childRunId !== undefined || !source.budgetAllocations[id]) return source
  const { [id]: _unused, ...budgetAllocations } = source.budgetAllocations
  return withBudgetState({ ...source, budgetAllocations })
}

/** What the source is told of the end. */
function resultOf(request: AgentRequest, child: Run | undefined, at: string): PendingResult {
  const {
    id,
    kind,
    status,
    recipient,
    childRunId,
    completionSummary,
    acceptanceEvidence,
    artifacts,
    resolutionReason,
  } = request
  return {
    kind: 'request',
    id,
    at,
    status,
    requestKind: kind,
    recipient,
    ...(childRunId !== undefined && { childRunId }),
    ...(completionSummary !== undefined && { summary: completionSummary }),
    ...(acceptanceEvidence !== undefined && { acceptanceEvidence }),
    ...(artifacts.length > 0 && { artifacts }),
    ...(child?.output !== undefined && { output: child.output }),
    ...(resolutionReason !== undefined && { reason: resolutionReason }),
  }
}

const KEPT = 32

/** The newest results stand in the source's output too, until a turn gives it another. */
function withResult(output: unknown, result: PendingResult): Record<string, unknown> {
  const given: Record<string, unknown> =
    output !== null && typeof output === 'object' && !Array.isArray(output) ? { ...output } : {}
  const before = Array.isArray(given['collaborationResults']) ? given['collaborationResults'] : []
  return { ...given, collaborationResults: [...before, result].slice(-KEPT) }
}
