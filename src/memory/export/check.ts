import { md5 } from '../../base/hash.ts'
import { entryProblem } from '../ledger.ts'
import { GENESIS_HASH } from '../store/chains.ts'
import type { LedgerRow } from '../store/ledger.ts'
import { ExportError, RECORDS, type ExportRecord, type RecordOf } from './format.ts'

/** Where a record stands in its workspace; versions and Cells belong to the Memory before them. */
const PLACES = new Map(Object.keys(RECORDS).map((type, place) => [type, place]))
const placeOf = (type: ExportRecord['type']): number =>
  PLACES.get(type === 'version' || type === 'cell' ? 'memory' : type) ?? 0

interface OpenMemory {
  record: RecordOf<'memory'>
  lastVersion: Pick<RecordOf<'version'>, 'watermark' | 'version_no' | 'content_md5_after'> | undefined
  cells: number
}

interface OpenWorkspace {
  chain: RecordOf<'chain'>
  isLive: boolean
  place: number
  collections: Set<string>
  memory: OpenMemory | undefined
  ledger: { seq: number; hash: string }
  /** Targets of redacted entries whose forget has not come yet. */
  redacted: Set<string>
}

/** Whether records make sense one after the other: their order, digests, what refers to what, and the ledger's chain. */
export class ExportCheck {
  #open: OpenWorkspace | undefined

  /** @throws ExportError saying what does not fit */
  accept(record: ExportRecord): void {
    if (record.type === 'chain') {
      const before = this.#open?.chain.workspace_id ?? ''
      this.end()
      refuse(record.workspace_id <= before, `${record.workspace_id} does not follow ${before}`)
      this.#open = begin(record)
      return
    }
    const open = this.#open
    if (!open) throw new ExportError('the first record must be a chain')
    refuse(placeOf(record.type) < open.place, `a ${record.type} cannot stand here`)
    refuse(!open.isLive && !['workspace', 'ledger'].includes(record.type), `its workspace is missing before it`)
    open.place = placeOf(record.type)
    switch (record.type) {
      case 'workspace':
        refuse(open.isLive, 'the workspace stands there twice')
        open.isLive = true
        return
      case 'collection':
        open.collections.add(record.collection_id)
        return
      case 'memory':
        endMemory(open)
        acceptMemory(open, record)
        return
      case 'version':
        acceptVersion(open.memory, record)
        return
      case 'cell':
        acceptCell(open.memory, record)
        return
      case 'agent':
      case 'edge':
      case 'pin':
        return
      case 'ledger':
        acceptEntry(open, { ...record, workspace_id: open.chain.workspace_id })
    }
  }

  /** Ends the last workspace. @throws ExportError when something of it is missing */
  end(): void {
    const open = this.#open
    if (!open) return
    endMemory(open)
    const { chain, ledger, redacted } = open
    refuse(
      ledger.seq !== chain.seq || ledger.hash !== chain.head_hash,
      `the ledger of ${chain.workspace_id} ends at entry ${ledger.seq}, not at its head, entry ${chain.seq}`,
    )
    const [target] = redacted
    refuse(target !== undefined, `an entry about ${target} is redacted without a forget that asked for it`)
    this.#open = undefined
  }
}

function refuse(isWrong: boolean, message: string): void {
  if (isWrong) throw new ExportError(message)
}

const begin = (chain: RecordOf<'chain'>): OpenWorkspace => ({
  chain,
  isLive: false,
  place: 0,
  collections: new Set(),
  memory: undefined,
  ledger: { seq: 0, hash: GENESIS_HASH },
  redacted: new Set(),
})

function acceptMemory(open: OpenWorkspace, record: RecordOf<'memory'>): void {
  const { collection_id: collection, forgotten_at: forgotten } = record
  refuse(
    forgotten === null && collection !== null && !open.collections.has(collection),
    `its collection ${collection} is not in the file`,
  )
  open.memory = { record, lastVersion: undefined, cells: 0 }
}

function acceptVersion(memory: OpenMemory | undefined, version: RecordOf<'version'>): void {
  if (!memory || memory.cells > 0) throw new ExportError('a version must follow its Memory')
  refuse(version.version_no <= (memory.lastVersion?.version_no ?? 0), `version ${version.version_no} is out of order`)
  refuse(md5(version.content) !== version.content_md5_after, 'the content is not what content_md5_after says')
  memory.lastVersion = version
}

function acceptCell(memory: OpenMemory | undefined, cell: RecordOf<'cell'>): void {
  if (!memory) throw new ExportError('a Cell must follow its Memory')
  refuse(cell.seq !== memory.cells, `Cell ${memory.cells} is missing`)
  refuse(md5(cell.text) !== cell.text_md5, 'the text is not what text_md5 says')
  memory.cells++
}

function endMemory(open: OpenWorkspace): void {
  const { memory } = open
  if (!memory) return
  open.memory = undefined
  const { record, lastVersion, cells } = memory
  const { memory_id: id } = record
  refuse(cells !== record.cell_count, `${id} has ${cells} Cells, not ${record.cell_count}`)
  if (record.forgotten_at !== null) refuse(lastVersion !== undefined, `${id} was forgotten and has a version`)
  else refuse(lastVersion?.watermark !== record.head_watermark, `the head of ${id} is missing`)
  refuse(
    lastVersion !== undefined && lastVersion.content_md5_after !== record.content_md5,
    `content_md5 of ${id} is not that of its head`,
  )
}

function acceptEntry(open: OpenWorkspace, entry: LedgerRow): void {
  endMemory(open)
  const problem = entryProblem(entry, open.ledger.seq + 1, open.ledger.hash)
  refuse(problem !== undefined, `ledger entry ${entry.seq}: ${problem}`)
  open.ledger = { seq: entry.seq, hash: entry.entry_hash }
  const { target, op, redact_audit: redacts, redacted_fields: redacted } = entry
  if (target === null) refuse(redacted !== null, 'an entry without target is redacted')
  else if (op === 'forget' && redacts === 1) open.redacted.delete(target)
  else if (redacted !== null) open.redacted.add(target)
}
