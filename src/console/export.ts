import { csvLine } from '../base/csv.ts'
import { invalidInput, notFound } from '../memory/errors.ts'
import { queryLedger, requireLedger } from '../memory/ledger.ts'
import type { LedgerEntry } from '../memory/model.ts'
import { findChain, listChains } from '../memory/store/chains.ts'
import type { LedgerFilter } from '../memory/store/ledger.ts'
import { auditFilter } from './pages/audit.ts'
import type { PageRequest } from './pages/page.ts'
import type { Console } from './settings.ts'

const BATCH = 1000
const COLUMNS = 'ledger_id,timestamp,op,target,agent_id,workspace_id,latency_ms,request_id'

export interface AuditExport {
  headers: Record<string, string>
  rows: (signal: AbortSignal) => AsyncGenerator<string>
}

/**
 * All entries that match, oldest first, workspace after workspace; deleted workspaces too. Contract: memory.md 14.
 * @throws invalid_input 400, not_found 404 before anything is sent.
 */
export async function auditExport({ service }: Console, request: PageRequest): Promise<AuditExport> {
  const { query } = request
  const format = query('format') ?? 'ndjson'
  if (format !== 'csv' && format !== 'ndjson') throw invalidInput('format must be csv or ndjson', 'format')
  const filter = auditFilter(request)
  const ws = query('ws')
  const { metadata } = service.seams
  const ledger = requireLedger(service.seams.ledger)
  if (ws !== undefined && !(await findChain(metadata, ws))) throw notFound('workspace', ws)
  const ids = ws === undefined ? (await listChains(metadata)).map((chain) => chain.workspaceId) : [ws]

  const type = format === 'csv' ? 'text/csv; charset=utf-8' : 'application/x-ndjson'
  return {
    headers: {
      'Content-Type': type,
      'Content-Disposition': `attachment; filename="${ws ?? 'all'}-ledger.${format}"`,
    },
    async *rows(signal) {
      if (format === 'csv') yield `${COLUMNS}\r\n`
      const toLine = format === 'csv' ? toCsv : (entry: LedgerEntry) => `${JSON.stringify(entry)}\n`
      for (const id of ids) {
        for await (const entries of batches(ledger, id, filter)) {
          if (signal.aborted) return
          yield entries.map(toLine).join('')
        }
      }
    },
  }
}

async function* batches(
  ledger: Parameters<typeof queryLedger>[0],
  workspaceId: string,
  filter: LedgerFilter,
): AsyncGenerator<LedgerEntry[]> {
  let cursor: string | undefined
  do {
    const page = await queryLedger(ledger, workspaceId, filter, 'asc', BATCH, cursor)
    if (page.entries.length > 0) yield page.entries
    cursor = page.next_cursor
  } while (cursor !== undefined)
}

const toCsv = (entry: LedgerEntry): string => {
  const { ledger_id, ts, op, target = '', agent_id, workspace_id, latency_ms, request_id } = entry
  return csvLine([ledger_id, ts, op, target, agent_id, workspace_id, String(latency_ms), request_id])
}
