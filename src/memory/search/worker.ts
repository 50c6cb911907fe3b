import { parentPort, workerData } from 'node:worker_threads'
import { LocalSearch } from './local.ts'
import type { FromWorker, ToWorker, WorkerStart } from './remote.ts'
import type { CellSource } from './types.ts'

const { sourceModule, sourceOptions, maxCells }: WorkerStart = workerData
const { openCellSource }: { openCellSource: (options: unknown) => CellSource } = await import(sourceModule)
const indexes = new LocalSearch(openCellSource(sourceOptions), maxCells)
const running = new Map<number, AbortController>()

async function search({ id, workspaceId, model, query }: ToWorker & { kind: 'search' }): Promise<FromWorker> {
  const controller = new AbortController()
  running.set(id, controller)
  try {
    const answer = await indexes.search(workspaceId, model, query, controller.signal)
    return { id, answer, sizes: indexes.sizes() }
  } catch (error) {
    return { id, error, sizes: indexes.sizes() }
  } finally {
    running.delete(id)
  }
}

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- that is of windows
const answer = (message: FromWorker): void => parentPort?.postMessage(message)

parentPort?.on('message', (message: ToWorker) => {
  if (message.kind === 'search') void search(message).then(answer)
  else if (message.kind === 'cancel') running.get(message.id)?.abort()
  else indexes.forget(message.workspaceId)
})
