import { parseTimestamp } from '../../base/clock.ts'
import { recentEntries } from '../../memory/activity.ts'
import type { Database } from '../../database/database.ts'
import { invalidInput, MemoryError, notFound } from '../../memory/errors.ts'
import { queryLedger, type LedgerPage } from '../../memory/ledger.ts'
import { LEDGER_OPS } from '../../memory/model.ts'
import { findChain } from '../../memory/store/chains.ts'
import type { LedgerFilter } from '../../memory/store/ledger.ts'
import { listWorkspaces } from '../../memory/store/workspaces.ts'
import { verifyLedger } from '../../memory/verify-ledger.ts'
import { toRefusal, type Refusal } from '../errors.ts'
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
  if (unknown !== undefined) throw invalidInput(`op ${unknown} is not one of ${LEDGER_OPS.join(', ')}`, 'ops')
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

/** The ledger of one workspace, or the newest of all; what a filter is refused for is part of the page. @throws not_found 404. */
export async function auditPage({ service }: Console, request: PageRequest): Promise<Page> {
  const { query } = request
  const { ledger, metadata } = service.seams
  const ws = query('ws')
  const cursor = query('cursor')
  // A deleted workspace keeps its chain and its entries.
  const chain = ws === undefined ? undefined : await findChain(metadata, ws)
  if (ws !== undefined && !chain) throw notFound('workspace', ws)
  const [workspaces, answer] = await Promise.all([
    listWorkspaces(metadata, CHOICES, undefined, undefined),
    ledger && entriesOf(ledger, request),
  ])
  const names = ['ws', 'agent', 'ops', 'since', 'until', 'target', 'actor']
  const asked = Object.fromEntries(names.map((name) => [name, query(name) ?? '']))
  return {
    template: './audit',
    title: 'Audit',
    ...(answer?.refusal && { status: answer.refusal.status }),
    data: {
      asked,
      refusal: answer?.refusal,
      isFiltered: names.some((name) => name !== 'ws' && asked[name] !== ''),
      chain,
      workspaces: workspaces.items,
      names: new Map(workspaces.items.map(({ id, name }) => [id, name])),
      ops: LEDGER_OPS,
      /** A ledger in a file is verified here, and not listed. */
      isListed: ledger !== undefined,
      entries: answer?.entries ?? [],
      nextCursor: answer?.next_cursor,
      isFirst: cursor === undefined,
    },
  }
}

async function entriesOf(ledger: Database, request: PageRequest): Promise<LedgerPage & { refusal?: Refusal }> {
  const { query } = request
  const ws = query('ws')
  const cursor = query('cursor')
  try {
    const filter = auditFilter(request)
    return ws === undefined
      ? await recentEntries(ledger, filter, PAGE, cursor)
      : await queryLedger(ledger, ws, filter, 'desc', PAGE, cursor)
  } catch (error) {
    if (!(error instanceof MemoryError)) throw error
    return { entries: [], refusal: toRefusal(error) }
  }
}

/** Recomputes the chain of a workspace, as a fragment. @throws not_found 404. */
export async function verifyFragment({ service }: Console, { query }: PageRequest): Promise<object> {
  const ws = query('ws') ?? ''
  const [outcome] = await verifyLedger(service.seams, ws)
  if (!outcome) throw notFound('workspace', ws)
  return { outcome }
}
