import type { FastifyInstance } from 'fastify'
import type { Clock } from '../base/clock.ts'
import { ConsoleError, toRefusal } from './errors.ts'
import { HEADERS } from './guard.ts'
import { gatewayMenu } from './menu.ts'
import { serveStatic } from './static.ts'
import { render } from './view.ts'

interface Shell {
  title: string
  lead: string
}

/** Pages without data of their own: scripts fill them over the routes of the gateway. Contract: gateway.md 13. */
const SHELLS = {
  credentials: { title: 'Credentials', lead: 'The ways to providers: addresses, keys, health.' },
  models: { title: 'Models', lead: 'Aliases, their shares and fallbacks, and where a request would go now.' },
  playground: { title: 'Playground', lead: 'Ask one model, or two side by side.' },
  usage: { title: 'Usage', lead: 'Requests, tokens and cost, each counted once.' },
  audit: { title: 'Audit', lead: 'Who changed what, in a chain of hashes.' },
  keys: { title: 'Keys', lead: 'What programs and agents bring: limited, counted, ended when you say so.' },
  settings: { title: 'Gateway settings', lead: 'For the whole organization.' },
} satisfies Record<string, Shell>

type Section = keyof typeof SHELLS

const STYLES = ['gateway', 'gateway-tables', 'gateway-usage']
  .map((name) => `<link rel="stylesheet" href="/ui/static/${name}.css">`)
  .join('\n')

const SECTIONS = Object.keys(SHELLS).join('|')

interface GatewayConsoleSettings {
  /** Whether the memory service has its pages beside these. */
  hasMemory: boolean
}

/** Mounts the pages of the gateway under `/ui/gateway`. Whoever opens them signs in there, to the platform. */
export function mountGatewayConsole(app: FastifyInstance, clock: Clock, { hasMemory }: GatewayConsoleSettings): void {
  app.register(
    async (ui) => {
      ui.addHook('onRequest', async (_request, reply) => void reply.headers(HEADERS))
      ui.get('/', async (_request, reply) => reply.redirect('/ui/gateway/credentials', 303))
      ui.get<{ Params: { section: Section } }>(`/:section(^(?:${SECTIONS})$)`, async ({ params }, reply) => {
        const { section } = params
        const { title, lead } = SHELLS[section]
        const menu = gatewayMenu(hasMemory)
        const frame = { title, section, menu, csrf: '', hasSession: false, now: clock.now() }
        return reply.type('text/html; charset=utf-8').send(render('./gateway', { lead, head: STYLES }, frame))
      })
    },
    { prefix: '/ui/gateway' },
  )
  if (hasMemory) return
  app.register(
    async (ui) => {
      ui.addHook('onRequest', async (_request, reply) => void reply.headers(HEADERS))
      ui.get('/static/:file', serveStatic)
      ui.get('/', async (_request, reply) => reply.redirect('/ui/gateway/credentials', 303))
      ui.setNotFoundHandler(() => {
        throw new ConsoleError('not_found', 'There is no such page.')
      })
      ui.setErrorHandler((error, request, reply) => {
        const refusal = toRefusal(error)
        const { id: requestId } = request
        if (refusal.status >= 500) request.log.error({ err: error, request_id: requestId }, 'a request failed')
        const title = 'Not possible'
        const frame = { title, section: '', menu: gatewayMenu(false), csrf: '', hasSession: false, now: clock.now() }
        const page = render('./error', { refusal, requestId }, frame)
        return reply.code(refusal.status).type('text/html; charset=utf-8').send(page)
      })
    },
    { prefix: '/ui' },
  )
}
