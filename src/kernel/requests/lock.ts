import type { Change } from '../change.ts'
import { conflict } from '../errors.ts'
import type { AgentRequest } from '../model/request.ts'
import type { Run } from '../model/run.ts'
import { lockRecord, readRecord } from '../store/records.ts'
import { requests } from '../store/requests.ts'
import { runs } from '../store/runs.ts'

export interface Locked {
  request: AgentRequest
  source: Run
}

/** A request with its source run, both locked. @throws not_found */
export async function lockRequest({ tx, scope }: Change, id: string): Promise<Locked> {
  const { sourceRunId } = await readRecord(tx, requests, scope, id)
  const source = await lockRecord(tx, runs, scope, sourceRunId)
  return { source, request: await lockRecord(tx, requests, scope, id) }
}

/** The run that works for an accepted request, locked. @throws conflict where there is none yet, or at another revision */
export async function lockChild({ tx, scope }: Change, request: AgentRequest, expectedRevision?: number): Promise<Run> {
  const { kind, status, childRunId } = request
  if (childRunId === undefined) throw conflict(`a ${kind} that is ${status} has no run yet`)
  const child = await lockRecord(tx, runs, scope, childRunId)
  if (expectedRevision !== undefined && expectedRevision !== child.revision) {
    throw conflict(`revision conflict: expected child run ${expectedRevision}, current ${child.revision}`)
  }
  return child
}
