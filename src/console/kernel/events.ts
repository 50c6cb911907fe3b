import { SEVERITIES } from '../../kernel/model/event.ts'
import { listEvents } from '../../kernel/store/events.ts'
import type { Page, PageRequest } from '../pages/page.ts'
import { pageOf, scopeOf, shared, type KernelConsole } from './kernel.ts'

const SELECTORS = ['runId', 'agentId', 'objectiveId', 'teamId', 'projectId'] as const

/** What happened in a scope, the newest first. @throws invalid_input 400 */
export async function activityPage(console: KernelConsole, request: PageRequest): Promise<Page> {
  const scope = scopeOf(console, request.query('scope'))
  const { database } = console.kernel.context.store
  const asked: Record<string, string> = {}
  for (const name of [...SELECTORS, 'eventType', 'severity']) asked[name] = request.query(name) ?? ''
  const { eventType = '', severity = '', ...selected } = asked
  const filter = {
    ...Object.fromEntries(Object.entries(selected).filter(([, value]) => value !== '')),
    ...(eventType !== '' && { eventType: [eventType] }),
    ...(severity !== '' && { severity: [severity] }),
  }
  const found = await pageOf(
    console,
    request,
    `activity ${JSON.stringify(filter)}`,
    scope,
    async ({ limit, after }) => {
      const [position] = after ?? []
      const behind = typeof position === 'number' ? { after: position } : {}
      const listed = await listEvents(database, scope, filter, { order: 'desc', limit, details: true, ...behind })
      const items = listed.slice(0, limit)
      const last = items.at(-1)
      return { items: items.map(({ event }) => event), ...(listed.length > limit && last && { next: [last.position] }) }
    },
  )
  return {
    template: './kernel/activity',
    title: 'Activity',
    data: {
      ...shared(console, scope),
      asked,
      severities: SEVERITIES,
      events: found.items,
      isFirst: found.isFirst,
      nextCursor: found.nextCursor,
    },
  }
}
