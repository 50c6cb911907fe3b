import * as z from 'zod'
import { canonicalJson } from '../../base/canonical-json.ts'
import { readActivity } from '../activity.ts'
import { invalid } from '../errors.ts'
import { CATEGORIES, SEVERITIES } from '../model/event.ts'
import { id, text, visibility } from '../model/fields.ts'
import { scopeKey } from '../store/scope-key.ts'
import { readCursor, writeCursor } from './cursor.ts'
import { read } from './handlers.ts'
import { integer, several } from './query.ts'
import type { Handlers } from './route.ts'

const FILTER = {
  runId: id.exactOptional(),
  agentId: id.exactOptional(),
  objectiveId: id.exactOptional(),
  teamId: id.exactOptional(),
  projectId: id.exactOptional(),
  conversationId: id.exactOptional(),
  eventType: z.array(text(128)).exactOptional(),
  severity: several(SEVERITIES).exactOptional(),
  visibility: several(visibility.options).exactOptional(),
  category: several(CATEGORIES).exactOptional(),
}

const PAGE = {
  order: z.enum(['asc', 'desc']).default('desc'),
  cursor: z.string().exactOptional(),
  limit: integer(1, 100).default(25),
  includeDetails: z
    .enum(['true', 'false'])
    .default('false')
    .transform((value) => value === 'true'),
}

/** Contract: kernel-1.md 2 */
export const activityRoutes: Handlers = {
  'GET /activity': read({ ...FILTER, ...PAGE }, async ({ context, scope, query }) => {
    const { order, cursor, limit, includeDetails: details, ...filter } = query
    const { cursorSecret } = context.store
    const list = `GET /activity\n${scopeKey(scope)}\n${canonicalJson({ ...filter, order })}`
    const [after] = cursor === undefined ? [] : readCursor(cursorSecret, list, cursor)
    if (after !== undefined && typeof after !== 'number') throw invalid('cursor is not one that this list gave out')
    const { next, ...page } = await readActivity(context, scope, filter, {
      order,
      limit,
      details,
      ...(after !== undefined && { after }),
    })
    return { ...page, ...(next !== undefined && { nextCursor: writeCursor(cursorSecret, list, [next]) }) }
  }),
}
