import type { Clock } from '../../base/clock.ts'
import type { Queryable } from '../../database/database.ts'
import type { Embedding } from '../embedding.ts'
import type { ConflictRule } from '../import.ts'
import type { Seams } from '../seams.ts'
import { findChain } from '../store/chains.ts'
import { readChain } from '../store/ledger.ts'
import { Draft } from './draft.ts'
import { ExportError, type RecordOf, type RecordType } from './format.ts'
import type { Entry } from './read.ts'
import { inTurn } from './turn.ts'

/** A workspace that is here already, in another state than in the file. */
export class ConflictError extends ExportError {}

export interface RestoreOptions {
  /** For a workspace that is here with other content. */
  rule: ConflictRule
  /** These workspaces only. */
  only: ReadonlySet<string> | undefined
}

/** What was done, or would be. */
export interface RestoreSummary {
  workspaces: { imported: number; overwritten: number; unchanged: number; skipped: number }
  /** Of the workspaces imported and overwritten. */
  records: Record<Exclude<RecordType, 'chain' | 'workspace'>, number>
  /** Cells that the queue embeds, once a server runs. */
  queued_cells: number
}

type Fate = keyof RestoreSummary['workspaces']

/** Where to: its stores, models, time, and the name under which it takes its turn. */
export interface RestoreParts {
  seams: Seams
  embedding: Embedding
  clock: Clock
  holder: string
}

/**
 * Brings the workspaces of an export into the stores. Each appears whole or not at all: an import that was cut off is run
 * again, finds what is there already by the head of its ledger, and begins anew with the one it was at. In ledgers nothing
 * is written: they come with the workspaces.
 * @throws ConflictError under the rule `error`, ExportError for what cannot be brought in
 */
export async function restore(
  parts: RestoreParts,
  entries: AsyncIterable<Entry>,
  options: RestoreOptions,
): Promise<RestoreSummary> {
  if (!parts.seams.ledger) throw new ExportError('the ledger is a file, into which nothing can be brought')
  return inTurn(parts.seams.metadata, parts.holder, parts.clock, (confirm) =>
    walk(parts.seams, entries, options, (chain) => beginDraft(parts, confirm, chain)),
  )
}

/** What `restore` would do; reads all entries, and writes nothing. `seams` may be absent: for stores that are not there yet. */
export const foresee = (
  seams: Seams | undefined,
  entries: AsyncIterable<Entry>,
  options: RestoreOptions,
): Promise<RestoreSummary> =>
  walk(seams, entries, options, async () => ({
    add: () => Promise.resolve(),
    finish: () => Promise.resolve(0),
    discard: () => Promise.resolve(),
  }))

/** Takes the records of one workspace. */
interface Sink extends Pick<Draft, 'add'> {
  /** Gives the number of Cells left to the queue. */
  finish(): Promise<number>
  discard(): Promise<unknown>
}

async function beginDraft(
  { seams, embedding, clock }: RestoreParts,
  confirm: (tx: Queryable) => Promise<void>,
  chain: RecordOf<'chain'>,
): Promise<Sink> {
  const draft = new Draft(seams, embedding, chain.workspace_id)
  await draft.erase()
  return {
    add: (record) => draft.add(record),
    finish: () => draft.finish(chain, clock.now(), confirm),
    // The failure that led here is what to tell; what stays is erased by the next import. Whoever took over keeps theirs.
    discard: () =>
      seams.metadata
        .transaction(confirm)
        .then(() => draft.erase())
        .catch(() => undefined),
  }
}

async function walk(
  seams: Seams | undefined,
  entries: AsyncIterable<Entry>,
  { rule, only }: RestoreOptions,
  begin: (chain: RecordOf<'chain'>) => Promise<Sink>,
): Promise<RestoreSummary> {
  const summary: RestoreSummary = {
    workspaces: { imported: 0, overwritten: 0, unchanged: 0, skipped: 0 },
    records: { collection: 0, agent: 0, pin: 0, memory: 0, version: 0, cell: 0, edge: 0, ledger: 0 },
    queued_cells: 0,
  }
  const missing = new Set(only)
  let sink: Sink | undefined
  const finish = async (): Promise<void> => {
    summary.queued_cells += (await sink?.finish()) ?? 0
    sink = undefined
  }
  try {
    for await (const { record } of entries) {
      if (record.type === 'chain') {
        await finish()
        missing.delete(record.workspace_id)
        if (only && !only.has(record.workspace_id)) continue
        const fate = await fateOf(seams, record, rule)
        summary.workspaces[fate]++
        if (fate === 'imported' || fate === 'overwritten') sink = await begin(record)
      } else if (sink) {
        if (record.type !== 'workspace') summary.records[record.type]++
        await sink.add(record)
      }
    }
    await finish()
  } catch (error) {
    await sink?.discard()
    throw error
  }
  const [absent] = missing
  if (absent !== undefined) throw new ExportError(`workspace ${absent} is not in it`)
  return summary
}

/**
 * The head of a ledger stands for all that ever happened in its workspace: equal heads, equal workspaces. Without entries it is
 * what an import that was cut off left.
 */
async function fateOf(
  seams: Seams | undefined,
  { workspace_id: id, seq, head_hash: hash }: RecordOf<'chain'>,
  rule: ConflictRule,
): Promise<Fate> {
  const here = seams && (await findChain(seams.metadata, id))
  if (!here || here.seq === 0) return 'imported'
  if (here.seq === seq && here.headHash === hash) return 'unchanged'
  if (rule === 'skip') return 'skipped'
  if (rule === 'overwrite') return 'overwritten'
  const [entry] = seams.ledger ? await readChain(seams.ledger, id, seq - 1, 1) : []
  const state =
    entry?.entry_hash === hash ? `has gone on since, by ${here.seq - seq} ledger entries` : 'has other content'
  throw new ConflictError(`workspace ${id} is here already and ${state}`)
}
