import { recentEntries } from '../../memory/activity.ts'
import { listWorkspaces } from '../../memory/store/workspaces.ts'
import type { Console } from '../settings.ts'
import type { Page } from './page.ts'

const RECENT = 20
const WORKSPACES = 8

/** Whether all is well, the first workspaces, and what happened last. */
export async function homePage({ service }: Console): Promise<Page> {
  const [readiness, workspaces, activity] = await Promise.all([
    service.health.readiness(),
    listWorkspaces(service.seams.metadata, WORKSPACES, undefined, undefined),
    service.seams.ledger ? recentEntries(service.seams.ledger, {}, RECENT) : undefined,
  ])
  const names = new Map(workspaces.items.map(({ id, name }) => [id, name]))
  const data = { readiness, workspaces: workspaces.items, hasMore: workspaces.nextCursor !== undefined }
  return {
    template: './home',
    title: 'Home',
    data: { ...data, entries: activity?.entries ?? [], isListed: activity !== undefined, names },
  }
}
