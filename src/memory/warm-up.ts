import { errorText } from '../base/errors.ts'
import { HASH_MODEL } from './embedder/hash.ts'
import type { Embedding } from './embedding.ts'
import { readFirstCells } from './first-cells.ts'
import type { Workspace } from './model.ts'
import type { Logger, SearchIndex } from './ports.ts'
import type { Recall } from './recall.ts'
import { NOTHING_ASKED } from './search/types.ts'
import type { Seams } from './seams.ts'
import { listBusiest } from './store/chains.ts'
import { listMemories } from './store/memories.ts'
import { findWorkspace } from './store/workspaces.ts'

/** Below it an index fills in well under a second, when it is first asked. */
const CHANGES = 5000
const WORKSPACES = 10
/**
 * Until they have run, the compiler is at work and a question takes half as long again. 200 questions over 10,000 Memories
 * behind 40 of them take 1.05 ms each, behind 120 1.01.
 */
const QUESTIONS = 120
const WORDS = 3

/** What is made ready: the capabilities that questions go through, and the end of it. */
interface Parts {
  seams: Seams
  embedding: Embedding
  index: SearchIndex
  recall: Recall
  log: Logger
  signal: AbortSignal
}

/**
 * After a start: fills the indexes of the largest workspaces, and asks the largest one questions of words that are in it, so
 * that the first question of a user waits neither for an index nor for the compiler.
 */
export async function warmUp(parts: Parts): Promise<void> {
  const { seams, embedding, index, log, signal } = parts
  try {
    const [largest, ...others] = await listBusiest(seams.metadata, CHANGES, WORKSPACES)
    for (const id of largest === undefined ? [] : [largest, ...others]) {
      const workspace = await findWorkspace(seams.metadata, id)
      if (workspace) await index.search(id, embedding.of(workspace).model, NOTHING_ASKED, signal)
      if (workspace && id === largest) await askQuestions(parts, workspace)
    }
  } catch (error) {
    if (!signal.aborted) log.warn({ reason: errorText(error) }, 'the indexes were not filled ahead')
  }
}

/** No provider is asked: questions have vectors only where the index makes them itself. */
async function askQuestions({ seams, embedding, recall, signal }: Parts, workspace: Workspace): Promise<void> {
  const mode = embedding.of(workspace).model === HASH_MODEL ? 'hybrid' : 'keyword'
  const { items } = await listMemories(seams.metadata, workspace.id, undefined, QUESTIONS, undefined)
  const cells = await readFirstCells(
    seams,
    items.map((memory) => memory.memory_id),
    'skip',
  )
  for (const { text } of cells.values()) {
    const query = text.split(/\s+/, WORDS).join(' ')
    const asker = { startedAt: performance.now(), signal }
    if (query.trim() !== '') await recall.run(asker, workspace, { query, mode, include_cells: false })
  }
}
