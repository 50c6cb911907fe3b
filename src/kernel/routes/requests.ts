import { invalid } from '../errors.ts'
import {
  completeRequest,
  createRequest as createBody,
  REQUEST_KINDS,
  REQUEST_STATES,
  respondToRequest,
  reviewCompletion,
} from '../model/request.ts'
import { id as idSchema, party, type Party } from '../model/fields.ts'
import { complete } from '../requests/complete.ts'
import { createRequest } from '../requests/create.ts'
import type { Stepped } from '../requests/end.ts'
import { respond } from '../requests/respond.ts'
import { review } from '../requests/review.ts'
import { saveMoved } from '../runs/save.ts'
import { shownRun } from '../runs/shown.ts'
import { findRecord, lockRecord, readRecord } from '../store/records.ts'
import { listRequests, requests } from '../store/requests.ts'
import { runs } from '../store/runs.ts'
import { page, read, write } from './handlers.ts'
import { several } from './query.ts'
import type { Asked, Handlers, Written } from './route.ts'

/** Contract: kernel-1.md 8. */

const FILTER = {
  sourceRunId: idSchema.exactOptional(),
  requesterType: party.shape.type.exactOptional(),
  requesterId: party.shape.id.exactOptional(),
  recipientType: party.shape.type.exactOptional(),
  recipientId: party.shape.id.exactOptional(),
  kind: several(REQUEST_KINDS).exactOptional(),
  status: several(REQUEST_STATES).exactOptional(),
}

/** @throws invalid for half a party */
function partyOf(side: string, type: string | undefined, id: string | undefined): Party | undefined {
  if ((type === undefined) !== (id === undefined)) throw invalid(`${side}Type and ${side}Id go together`)
  return type === undefined || id === undefined ? undefined : { type, id }
}

const idOf = (params: Readonly<Record<string, string>>): string => params['id'] ?? ''

/** The request and its runs as they are now. */
async function replay({ context, scope }: Pick<Asked<unknown>, 'context' | 'scope'>, id: string): Promise<object> {
  const db = context.store.database
  const request = await readRecord(db, requests, scope, id)
  const sourceRun = await findRecord(db, runs, scope, request.sourceRunId)
  const childRun = request.childRunId === undefined ? undefined : await findRecord(db, runs, scope, request.childRunId)
  return {
    request,
    ...(sourceRun && { sourceRun: shownRun(sourceRun) }),
    ...(childRun && { childRun: shownRun(childRun) }),
  }
}

const stepped = ({ request, sourceRun, childRun }: Stepped): Written => ({
  recordId: request.id,
  answer: (events) => ({
    request,
    sourceRun: shownRun(sourceRun),
    ...(childRun && { childRun: shownRun(childRun) }),
    events,
  }),
})

export const requestRoutes: Handlers = {
  'POST /agent-requests': write(createBody, { replay }, async ({ change, scope, body, creation }) => {
    const { scope: _s, actor: _a, idempotencyKey: _k, sourceRunId, ...fields } = body
    const source = await lockRecord(change.tx, runs, scope, sourceRunId)
    const { request, source: next } = await createRequest(change, { ...fields, ...creation }, source)
    const sourceRun = next === source ? source : await saveMoved(change, source, next)
    return { ...stepped({ request, sourceRun }), status: 201 }
  }),

  'GET /agent-requests': page(FILTER, async ({ context, scope, query }, request) => {
    const { requesterType, requesterId, recipientType, recipientId, ...filter } = query
    const requester = partyOf('requester', requesterType, requesterId)
    const recipient = partyOf('recipient', recipientType, recipientId)
    return listRequests(
      context.store.database,
      scope,
      { ...filter, ...(requester && { requester }), ...(recipient && { recipient }) },
      request,
    )
  }),

  'GET /agent-requests/{id}': read({}, ({ context, scope, params }) =>
    readRecord(context.store.database, requests, scope, idOf(params)),
  ),

  'POST /agent-requests/{id}/responses': write(respondToRequest, { replay }, async ({ change, params, body }) =>
    stepped(await respond(change, idOf(params), body)),
  ),

  'POST /agent-requests/{id}/completions': write(
    completeRequest,
    { keyRequired: true, replay },
    async ({ change, params, body, creation: { idempotencyKeyHash } }) => {
      const { scope: _s, actor: _a, idempotencyKey: _k, ...step } = body
      const key = idempotencyKeyHash === undefined ? {} : { completionKey: idempotencyKeyHash }
      return stepped(await complete(change, idOf(params), { ...step, ...key }))
    },
  ),

  'POST /agent-requests/{id}/completion-review': write(
    reviewCompletion,
    { keyRequired: true, replay },
    async ({ change, params, body, creation: { idempotencyKeyHash } }) => {
      const key = idempotencyKeyHash === undefined ? {} : { reviewKey: idempotencyKeyHash }
      return stepped(await review(change, idOf(params), { ...body, ...key }))
    },
  ),
}
