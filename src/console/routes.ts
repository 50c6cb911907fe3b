import type { FastifyReply, FastifyRequest } from 'fastify'
import { get, post, type Route } from '../http/routes.ts'
import { run } from './actions/action.ts'
import { editActions, previewEdit } from './actions/edits.ts'
import { imprintActions } from './actions/imprint.ts'
import { tagAndEdgeActions } from './actions/tags-and-edges.ts'
import { workspaceActions } from './actions/workspaces.ts'
import { activity } from './activity.ts'
import { bulkOperations } from './bulk/bulk.ts'
import { dump } from './bulk/dump.ts'
import { callerOf } from './caller.ts'
import { csrfToken } from './csrf.ts'
import { diffLines } from './diff.ts'
import { auditExport } from './export.ts'
import { wantsPage } from './guard.ts'
import { auditPage, verifyFragment } from './pages/audit.ts'
import { graphPage, graphReads } from './pages/graph.ts'
import { homePage } from './pages/home.ts'
import { memoriesPage } from './pages/memories.ts'
import { contentFile, memoryPage } from './pages/memory.ts'
import { page, pageRequest, sendPage } from './pages/page.ts'
import { ApiReference, referencePage } from './pages/reference.ts'
import { settingsPage } from './pages/settings.ts'
import { workspacePage, workspacesPage } from './pages/workspaces.ts'
import { sendOperation } from './reference/send.ts'
import type { Console } from './settings.ts'
import { EVENT_STREAM, type Streams } from './stream.ts'
import { renderFragment } from './view.ts'

/** What a signed-in operator sees. Contract: memory.md 14. */
export function pageRoutes(console: Console): Route[] {
  const { workspaces, audit, home, settings } = sections
  const homeRoute = page(console, home, () => homePage(console))
  const inWorkspaces = (path: string, build: typeof workspacePage): Route =>
    get(
      path,
      page(console, workspaces, (request) => build(console, request)),
    )
  return [
    get('', homeRoute),
    get('/', homeRoute),
    inWorkspaces('/workspaces', workspacesPage),
    inWorkspaces('/workspaces/:ws', workspacePage),
    inWorkspaces('/workspaces/:ws/memories', memoriesPage),
    inWorkspaces('/workspaces/:ws/memories/:mem', memoryPage),
    inWorkspaces('/workspaces/:ws/graph', graphPage),
    get(
      '/audit',
      page(console, audit, (request) => auditPage(console, request)),
    ),
    get(
      '/settings',
      page(console, settings, () => settingsPage(console)),
    ),
    get('/workspaces/:ws/memories/:mem/content', async (request, reply) => {
      const { name, content } = await contentFile(console, pageRequest(request))
      reply.header('Content-Disposition', `attachment; filename="${name}"`)
      return reply.type('text/plain; charset=utf-8').send(content)
    }),
  ]
}

const sections = { home: 'home', workspaces: 'workspaces', audit: 'audit', settings: 'settings' } as const

/** The API to read and to try. */
export function referenceRoutes(console: Console): Route[] {
  const api = new ApiReference(console)
  return [
    get(
      '/reference',
      page(console, 'reference', (request) => referencePage(console, api, request)),
    ),
    get('/reference/openapi.json', async (_request, reply) =>
      reply.header('Content-Disposition', 'attachment; filename="openapi.json"').send(api.document),
    ),
    post('/api/reference/send', async (request, reply) => {
      const data = await sendOperation(console, api.reference, request)
      if (wantsPage(request)) {
        return sendPage(console, request, reply, 'reference', { template: './reference-answer', title: 'Answer', data })
      }
      return reply
        .type('text/html; charset=utf-8')
        .send(renderFragment('./partials/reference-answer', data, console.clock.now()))
    }),
  ]
}

/** What an operator does, and the pieces of pages that are asked for on their own. */
export function actionRoutes(console: Console): Route[] {
  const actions = { ...workspaceActions, ...imprintActions, ...editActions, ...tagAndEdgeActions }
  return [
    ...Object.entries(actions).map(([name, action]) => post(`/api/${name}`, run(console, action))),
    ...Object.entries(graphReads).map(([name, read]) =>
      get(`/api/graph/${name}`, async (request, reply) => {
        const answer = await read(console, pageRequest(request))
        return reply.type('application/json; charset=utf-8').send(JSON.stringify(answer))
      }),
    ),
    post('/api/memories/preview', (request, reply) => sendPreview(console, request, reply)),
    get('/api/audit/verify', async (request, reply) => {
      const data = await verifyFragment(console, pageRequest(request))
      return reply
        .type('text/html; charset=utf-8')
        .send(renderFragment('./partials/verification', data, console.clock.now()))
    }),
  ]
}

/** What an edit would change, with the button that saves it; to a browser without scripts as a page. */
async function sendPreview(console: Console, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const caller = callerOf(console, request, AbortSignal.timeout(console.settings.timeoutMs))
  const preview = await previewEdit(console, { form: request.form, caller })
  const data = { ...preview, tab: 'memories', diff: diffLines(preview.memory.content ?? '', preview.after) }
  if (wantsPage(request)) {
    return sendPage(console, request, reply, 'workspaces', { template: './memory/preview', title: 'Review', data })
  }
  const csrf = csrfToken(console.sessions, request, reply)
  return reply
    .type('text/html; charset=utf-8')
    .send(renderFragment('./partials/review', data, console.clock.now(), csrf))
}

/** What comes in a stream: dumps, exports, bulk runs, what is going on. */
export const streamRoutes = (console: Console, streams: Streams): Route[] => [
  ...Object.entries(bulkOperations).map(([name, operation]) =>
    post(`/api/bulk/${name}`, async (request, reply) => {
      const caller = callerOf(console, request, AbortSignal.timeout(console.settings.timeoutMs))
      return streams.send(reply, EVENT_STREAM, await operation(console, { form: request.form, caller }))
    }),
  ),
  get('/api/bulk/dump', async (request, reply) => {
    const { headers, lines } = await dump(console, pageRequest(request))
    return streams.send(reply, headers, lines)
  }),
  get('/audit/export', async (request, reply) => {
    const { headers, rows } = await auditExport(console, pageRequest(request))
    return streams.send(reply, headers, rows)
  }),
  get('/events/activity', (_request, reply) =>
    streams.send(reply, EVENT_STREAM, (signal) => activity(console, signal)),
  ),
]
