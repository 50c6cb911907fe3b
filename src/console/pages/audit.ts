import { parseTimestamp } from '../../base/clock.ts'
import { recentEntries } from '../../memory/activity.ts'
import { invalidInput, notFound } from '../../memory/errors.ts'
import { queryLedger, verifyChain } from '../../memory/ledger.ts'
import { LEDGER_OPS } from '../../memory/model.ts'
import { findChain } from '../../memory/store/chains.ts'
import type { LedgerFilter } from '../../memory/store/ledger.ts'
import { listWorkspaces } from '../../memory/store/workspaces.ts'
import type { Console } from '../settings.ts'
import type { Page, PageRequest } from './page.ts'

const PAGE = 50
const CHOICES = 200

/** The filter in an address: `agent`, `ops` (comma list), `since`, `until`, `target`, `actor`.
 *  @throws invalid_input 400. */
export function auditFilter({ query }: PageRequest): LedgerFilter {
  const ops = query('ops')
    ?.split(',')
    .map((op) => op.trim())
  const unknown = ops?.find((op) => !LEDGER_OPS.some((known) => known === op))
  if (unknown !== undefined) throw invalidInput(`op ${unknown} is not a ledger operation`, 'ops')
  const target = query('target')
  return {
    agentId: query('agent'),
    actor: query('actor'),
    ops,
    since: timeOf(query('since'), 'since'),
    until: timeOf(query('until'), 'until'),
    ...(target?.startsWith('edg_') ? { edgeId: target } : { memoryId: target }),
  }
}

function timeOf(text: string | undefined, name: string): number | undefined {
  const ms = text === undefined ? undefined : parseTimestamp(text)
  if (text !== undefined && ms === undefined) throw invalidInput(`${name} must be a date or an ISO 8601 time`, name)
  return ms
}

/** The ledger of one workspace, or the newest of all. @throws not_found 404, invalid_input 400. */
export async function auditPage({ service }: Console, request: PageRequest): Promise<Page> {
  const { query } = request
  const { ledger, metadata } = service.seams
  const filter = auditFilter(request)
  const ws = query('ws')
  const cursor = query('cursor')
  // A deleted workspace keeps its chain and its entries.
  const chain = ws === undefined ? undefined : await findChain(metadata, ws)
  if (ws !== undefined && !chain) throw notFound('workspace', ws)
  const [workspaces, answer] = await Promise.all([
    listWorkspaces(metadata, CHOICES, undefined, undefined),
    ws === undefined
      ? recentEntries(ledger, filter, PAGE, cursor)
      : queryLedger(ledger, ws, filter, 'desc', PAGE, cursor),
  ])
  const names = ['ws', 'agent', 'ops', 'since', 'until', 'target', 'actor']
  const asked = Object.fromEntries(names.map((name) => [name, query(name) ?? '']))
  return {
    template: './audit',
    title: 'Audit',
    data: {
      asked,
      isFiltered: names.some((name) => name !== 'ws' && asked[name] !== ''),
      chain,
      workspaces: workspaces.items,
      names: new Map(workspaces.items.map(({ id, name }) => [id, name])),
      ops: LEDGER_OPS,
      entries: answer.entries,
      nextCursor: answer.next_cursor,
      isFirst: cursor === undefined,
    },
  }
}

/** Recomputes the chain of a workspace, as a fragment. @throws not_found 404. */
export async function verifyFragment({ service }: Console, { query }: PageRequest): Promise<object> {
  const ws = query('ws') ?? ''
  const readHead = () => findChain(service.seams.metadata, ws)
  if (!(await readHead())) throw notFound('workspace', ws)
  return { outcome: await verifyChain(service.seams.ledger, ws, readHead) }
}
