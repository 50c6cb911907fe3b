import { get, post, type Route } from '../../http/routes.ts'
import { run } from '../actions/action.ts'
import { csrfToken } from '../csrf.ts'
import { page, pageRequest, type Page, type PageRequest, type Section } from '../pages/page.ts'
import type { Console } from '../settings.ts'
import { renderFragment } from '../view.ts'
import { kernelActions } from './actions.ts'
import { approvalsData, approvalsPage } from './approvals.ts'
import { deploymentsPage } from './deployments.ts'
import { activityPage } from './events.ts'
import { kernelPaths, type KernelConsole } from './kernel.ts'
import { objectivePage, objectivesPage } from './objectives.ts'
import { runData, runPage } from './run.ts'
import { runsPage } from './runs.ts'

type Build = (kernel: KernelConsole, request: PageRequest) => Promise<Page>

const PAGES: readonly [path: string, section: Section, build: Build][] = [
  ['/objectives', 'objectives', objectivesPage],
  ['/objectives/:id', 'objectives', objectivePage],
  ['/runs', 'runs', runsPage],
  ['/runs/:id', 'runs', runPage],
  ['/approvals', 'approvals', approvalsPage],
  ['/activity', 'activity', activityPage],
  ['/deployments', 'deployments', deploymentsPage],
]

/** The parts of pages that are asked for again and again. */
const FRAGMENTS: readonly [path: string, template: string, dataOf: typeof approvalsData][] = [
  ['/runs/:id', './kernel/progress', runData],
  ['/approvals', './kernel/inbox', approvalsData],
]

/** The pages over runs of agents: what they do, what they may not do alone, who they are. */
export const kernelRoutes = (console: Console, kernel: KernelConsole): Route[] => [
  get('/kernel', async (_request, reply) => reply.redirect('/ui/kernel/runs', 303)),
  ...PAGES.map(([path, section, build]) =>
    get(
      `/kernel${path}`,
      page(console, section, async (request) => withPaths(await build(kernel, request))),
    ),
  ),
  ...FRAGMENTS.map(([path, template, dataOf]) =>
    get(`/api/kernel${path}`, async (request, reply) => {
      const data = { ...(await dataOf(kernel, pageRequest(request))), kernelPaths }
      const csrf = csrfToken(console.sessions, request, reply)
      return reply.type('text/html; charset=utf-8').send(renderFragment(template, data, console.clock.now(), csrf))
    }),
  ),
  ...Object.entries(kernelActions).map(([name, action]) =>
    post(
      `/api/${name}`,
      run(console, (_console, request) => action(kernel, request)),
    ),
  ),
]

const HEAD = '<link rel="stylesheet" href="/ui/static/kernel.css">'

const withPaths = (built: Page): Page => ({ ...built, data: { ...built.data, kernelPaths, head: HEAD } })
