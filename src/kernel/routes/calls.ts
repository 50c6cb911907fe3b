import { CALL_STATES } from '../model/action.ts'
import { id } from '../model/fields.ts'
import { calls, listCalls } from '../store/calls.ts'
import { readRecord } from '../store/records.ts'
import { page, read } from './handlers.ts'
import { several } from './query.ts'
import type { Handlers } from './route.ts'

/** Contract: kernel-1.md 9 */
export const callRoutes: Handlers = {
  'GET /action-calls': page(
    { runId: id.exactOptional(), status: several(CALL_STATES).exactOptional(), deploymentId: id.exactOptional() },
    ({ context, scope, query }, request) => listCalls(context.store.database, scope, query, request),
  ),
  'GET /action-calls/{id}': read({}, ({ context, scope, params }) =>
    readRecord(context.store.database, calls, scope, params['id'] ?? ''),
  ),
}
