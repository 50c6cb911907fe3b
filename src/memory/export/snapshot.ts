import { setTimeout as sleep } from 'node:timers/promises'
import { backOff } from '../../base/back-off.ts'
import type { Database, Queryable } from '../../database/database.ts'
import type { Seams } from '../seams.ts'
import { countOutbox } from '../store/backlog.ts'
import { allowPauses, totalSeq } from '../store/export.ts'
import { ExportError } from './format.ts'

/** One moment of the databases that an export reads. */
export interface View {
  metadata: Queryable
  graph: Queryable | undefined
  ledger: Queryable
}

const ATTEMPTS = 20
const PAUSE_MS = { first: 50, most: 2000 }

/** The databases do not show one moment: a mutation came between. */
class Moved extends Error {}

/**
 * Reads one moment of all stores, for as long as it takes: the databases must be opened for this, since others would wait for
 * the snapshots. Where they are several databases, their snapshots begin one after the other, so it tries
 * until no mutation came between and none is on its way. @throws ExportError when they never stand still.
 */
export async function readMoment<T>(seams: Seams, read: (view: View) => Promise<T>): Promise<T> {
  const { metadata, graph, ledger } = seams
  if (!ledger) throw new ExportError('the ledger is a file, which cannot be read workspace by workspace')
  const databases = [...new Set([metadata, graph, ledger])].filter((database) => database !== undefined)
  for (let attempt = 1; ; attempt++) {
    try {
      return await inSnapshots(databases, new Map(), async (views) => {
        const view = views.get(metadata)
        const ledgerView = views.get(ledger)
        if (!view || !ledgerView) throw new Error('metadata and ledger have snapshots')
        if (databases.length > 1 && !(await standsStill(seams, view))) throw new Moved()
        return read({ metadata: view, graph: graph && views.get(graph), ledger: ledgerView })
      })
    } catch (error) {
      if (!(error instanceof Moved)) throw error
      if (attempt === ATTEMPTS) {
        throw new ExportError(
          'the stores are in several databases and never stood still: stop the server, or export when less is written',
        )
      }
    }
    await seams.deliver()
    await sleep(backOff(attempt, PAUSE_MS.first, PAUSE_MS.most))
  }
}

async function standsStill({ metadata }: Seams, view: Queryable): Promise<boolean> {
  const isComing = (await countOutbox(view)).some(({ seam }) => seam === 'graph' || seam === 'ledger')
  return !isComing && (await totalSeq(metadata)) === (await totalSeq(view))
}

async function inSnapshots<T>(
  databases: readonly Database[],
  views: ReadonlyMap<Database, Queryable>,
  read: (views: ReadonlyMap<Database, Queryable>) => Promise<T>,
): Promise<T> {
  const [first, ...others] = databases
  if (!first) return read(views)
  return first.snapshot(async (view) => {
    await allowPauses(view)
    await totalSeq(view) // a snapshot begins with its first read
    return inSnapshots(others, new Map([...views, [first, view]]), read)
  })
}
