import { errorText } from '../base/errors.ts'
import type { Embedding } from './embedding.ts'
import type { Logger, SearchIndex } from './ports.ts'
import type { Seams } from './seams.ts'
import { listBusiest } from './store/chains.ts'
import { findWorkspace } from './store/workspaces.ts'

/** Below it an index fills in well under a second, when it is first asked. */
const CHANGES = 5000
const WORKSPACES = 10
const NOTHING = { text: '', mode: 'keyword', vector: null, k: 1, fusionWeight: 1, includeCells: false } as const

/** Fills the indexes of the largest workspaces after a start, so that the first question need not wait for them. */
export async function warmUp(
  seams: Seams,
  embedding: Embedding,
  index: SearchIndex,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  try {
    for (const id of await listBusiest(seams.metadata, CHANGES, WORKSPACES)) {
      const workspace = await findWorkspace(seams.metadata, id)
      if (workspace) await index.search(id, embedding.of(workspace).model, NOTHING, signal)
    }
  } catch (error) {
    if (!signal.aborted) log.warn({ reason: errorText(error) }, 'the indexes were not filled ahead')
  }
}
