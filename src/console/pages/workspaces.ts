import { decodeCursor, type Page as ListPage } from '../../base/pages.ts'
import { CHUNKERS } from '../../memory/chunker/index.ts'
import { invalidInput } from '../../memory/errors.ts'
import { RECALL_MODES, type Workspace } from '../../memory/model.ts'
import { listAgents } from '../../memory/store/agents.ts'
import { findChain } from '../../memory/store/chains.ts'
import { listCollections } from '../../memory/store/collections.ts'
import { listPins } from '../../memory/store/pins.ts'
import { listWorkspaces } from '../../memory/store/workspaces.ts'
import { CONFLICT_RULES } from '../../memory/import.ts'
import { callerOf } from '../caller.ts'
import type { Console } from '../settings.ts'
import type { Page, PageRequest } from './page.ts'
import { recallData } from './recall.ts'

const PAGE = 50

/** The key in the query's cursor. @throws invalid_input 400 when it is not one of this list. */
export function cursorOf<K extends readonly (string | number)[]>({ query }: PageRequest, shape: K): K | undefined {
  const cursor = query('cursor')
  if (cursor === undefined) return undefined
  const key = decodeCursor(cursor, shape)
  if (!key) throw invalidInput('cursor is not one that this list gave', 'cursor')
  return key
}

/** All workspaces, page by page. @throws invalid_input 400 for a cursor of another list */
export async function workspacesPage({ service }: Console, request: PageRequest): Promise<Page> {
  const before = cursorOf(request, [''] as const)?.[0]
  const { items, nextCursor } = await listWorkspaces(service.seams.metadata, PAGE, before, undefined)
  const data = { workspaces: items, nextCursor, isFirst: before === undefined, chunkers: CHUNKERS }
  return { template: './workspaces', title: 'Workspaces', data }
}

const TABS = ['recall', 'collections', 'agents', 'bulk', 'settings'] as const
type Tab = (typeof TABS)[number]

/** One workspace, by tab. @throws not_found 404. */
export async function workspacePage(console: Console, request: PageRequest): Promise<Page> {
  const workspace = await console.service.requireWorkspace(request.param('ws'))
  const tab = TABS.find((name) => name === request.query('tab')) ?? 'recall'
  const shown = await dataOf(tab, console, workspace, request)
  return {
    template: `./workspace/${tab}`,
    title: workspace.name,
    data: { workspace, tab, chunkers: CHUNKERS, ...shown },
  }
}

function dataOf(tab: Tab, console: Console, workspace: Workspace, request: PageRequest): Promise<object> {
  const { service } = console
  const db = service.seams.metadata
  switch (tab) {
    case 'recall':
      return recallTab(console, workspace, request)
    case 'collections':
      return listed(request, listCollections(db, workspace.id, PAGE, cursorOf(request, [''] as const)?.[0]))
    case 'agents':
      return listed(request, listAgents(db, workspace.id, PAGE, cursorOf(request, [0, ''] as const)))
    case 'bulk':
      return bulkTab(console, workspace)
    case 'settings':
      return settingsTab(console, workspace)
  }
}

async function listed<T>({ query }: PageRequest, page: Promise<ListPage<T>>): Promise<object> {
  const { items, nextCursor } = await page
  return { items, nextCursor, isFirst: query('cursor') === undefined }
}

const PINS = 50
const CHOICES = 200

async function recallTab(console: Console, workspace: Workspace, request: PageRequest): Promise<object> {
  const { service } = console
  const signal = AbortSignal.timeout(console.settings.timeoutMs)
  const [pins, collections, recall] = await Promise.all([
    listPins(service.seams.metadata, workspace.id, PINS, undefined),
    listCollections(service.seams.metadata, workspace.id, CHOICES, undefined),
    recallData(service, workspace, callerOf(console, request.request, signal), request.query),
  ])
  const modes = RECALL_MODES.filter((mode) => mode !== 'lookup')
  return { pins: pins.items, collections: collections.items, modes, ...recall }
}

async function bulkTab({ service }: Console, workspace: Workspace): Promise<object> {
  const collections = await listCollections(service.seams.metadata, workspace.id, CHOICES, undefined)
  return { collections: collections.items, conflictRules: CONFLICT_RULES }
}

async function settingsTab({ service }: Console, workspace: Workspace): Promise<object> {
  const chain = await findChain(service.seams.metadata, workspace.id)
  return { chain, model: service.embedding.of(workspace).model }
}
