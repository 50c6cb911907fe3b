import * as z from 'zod'
import { invalidInput } from '../errors.ts'
import { appendRequest, imprintRequest, patchRequest, tagKeySchema, tagRequest, updateRequest } from '../requests.ts'
import type { MemoryService } from '../service.ts'
import { removeTag, upsertTag } from '../tags.ts'
import { answerPage, cursorOf, limitOf } from './lists.ts'
import { bodyRoute, parseWith, route, type Route, type RouteRequest } from './route.ts'

const MEMORIES = '/workspaces/:ws/memories'
/** An id alone: what follows a `:` or `@` is another route. */
const MEMORY = `${MEMORIES}/:id(^[^:@]+)`

const SET_TAG = [
  { operation: 'setTag', method: 'PUT' },
  { operation: 'postTag', method: 'POST' },
] as const

/** memory.md 3.2. */
export const memoryRoutes = (service: MemoryService): Route[] => [
  bodyRoute(
    {
      operation: 'imprint',
      method: 'POST',
      path: MEMORIES,
      agent: 'required',
      status: 201,
      idempotent: true,
      etag: 'watermark',
    },
    imprintRequest,
    ({ caller, workspace }, body) => service.imprint.run(caller, workspace, body),
  ),
  route({ operation: 'listMemories', method: 'GET', path: MEMORIES }, async (request) => {
    const before = cursorOf(request, [0, ''] as const)
    const includeContent = booleanOf(request, 'include_content', true)
    const limit = limitOf(request, 50, 1000)
    const collectionId = request.query('collection_id')
    return answerPage(
      'memories',
      await service.memories.list(request.workspace, collectionId, includeContent, limit, before),
    )
  }),
  route({ operation: 'lookup', method: 'GET', path: MEMORY, etag: 'head_watermark' }, ({ workspace, param }) =>
    service.memories.lookup(workspace, param('id')),
  ),
  bodyRoute(
    { operation: 'update', method: 'PUT', path: MEMORY, agent: 'required', etag: 'watermark' },
    updateRequest,
    (request, body) =>
      service.edits.update(
        request.caller,
        request.workspace,
        request.param('id'),
        body,
        requireExpected(request, body),
      ),
  ),
  bodyRoute(
    { operation: 'patch', method: 'PATCH', path: MEMORY, agent: 'required', etag: 'watermark' },
    patchRequest,
    (request, body) =>
      service.edits.patch(request.caller, request.workspace, request.param('id'), body, requireExpected(request, body)),
  ),
  bodyRoute(
    {
      operation: 'append',
      method: 'POST',
      path: `${MEMORY}::append`,
      agent: 'required',
      idempotent: true,
      etag: 'watermark',
    },
    appendRequest,
    ({ caller, workspace, param, ifMatch }, body) =>
      service.edits.append(caller, workspace, param('id'), body, ifMatch ?? body.expected_watermark),
  ),
  route({ operation: 'forget', method: 'DELETE', path: MEMORY, agent: 'required' }, (request) => {
    const redactAudit = booleanOf(request, 'redact_audit', false)
    return service.forget.run(request.caller, request.workspace.id, request.param('id'), redactAudit, request.ifMatch)
  }),
  route(
    { operation: 'lookupAt', method: 'GET', path: `${MEMORY}@:watermark`, etag: 'head_watermark' },
    ({ workspace, param }) => service.memories.at(workspace, param('id'), param('watermark')),
  ),
  route({ operation: 'watermarkHistory', method: 'GET', path: `${MEMORY}/watermarks` }, async (request) => {
    const before = cursorOf(request, [0] as const)?.[0]
    const limit = limitOf(request, 1000, 1000)
    return answerPage(
      'watermarks',
      await service.memories.history(request.workspace.id, request.param('id'), limit, before),
    )
  }),
  ...SET_TAG.map((facts) =>
    bodyRoute(
      { ...facts, path: `${MEMORY}/tags/:key`, agent: 'required', status: 204 },
      tagRequest,
      ({ caller, workspace, param }, body) =>
        upsertTag(service.mutations, caller, workspace.id, param('id'), tagKey(param('key')), body.value),
    ),
  ),
  route(
    { operation: 'deleteTag', method: 'DELETE', path: `${MEMORY}/tags/:key`, agent: 'required', status: 204 },
    ({ caller, workspace, param }) =>
      removeTag(service.mutations, caller, workspace.id, param('id'), tagKey(param('key'))),
  ),
]

/** The header beats the body; one is required. */
function requireExpected(request: RouteRequest, body: { expected_watermark?: string | undefined }): string {
  const expected = request.ifMatch ?? body.expected_watermark
  if (expected === undefined) {
    throw invalidInput('expected_watermark, or the header If-Match, is required', 'expected_watermark')
  }
  return expected
}

const tagPath = z.object({ key: tagKeySchema })
const tagKey = (key: string): string => parseWith(tagPath, { key }).key

function booleanOf(request: Pick<RouteRequest, 'query'>, name: string, standard: boolean): boolean {
  const text = request.query(name)
  if (text === undefined) return standard
  if (text !== 'true' && text !== 'false') throw invalidInput(`${name} must be true or false`, name)
  return text === 'true'
}
