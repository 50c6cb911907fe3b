import { id } from '../model/fields.ts'
import { TURN_STATES } from '../model/turn.ts'
import { readRecord } from '../store/records.ts'
import { listTurns, turns } from '../store/turns.ts'
import { page, read } from './handlers.ts'
import { integer, several } from './query.ts'
import type { Handlers } from './route.ts'

/** Contract: kernel-1.md 7 */
export const turnRoutes: Handlers = {
  'GET /agent-turns': page(
    {
      runId: id,
      status: several(TURN_STATES).exactOptional(),
      afterSequence: integer(0, Number.MAX_SAFE_INTEGER).default(0),
    },
    ({ context, scope, query }, { after: [place] = [], ...request }) =>
      listTurns(context.store.database, scope, {
        ...query,
        ...request,
        ...(place !== undefined && { afterSequence: Number(place) }),
      }),
  ),
  'GET /agent-turns/{id}': read({}, ({ context, scope, params: { id: turnId = '' } }) =>
    readRecord(context.store.database, turns, scope, turnId),
  ),
}
