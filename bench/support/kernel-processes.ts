/** Several processes work on the runs of one PostgreSQL. */
import { fork, type ChildProcess } from 'node:child_process'
import { on, once } from 'node:events'
import { newPostgresStore } from '../../src/kernel/store/store.ts'
import { inParallel, installWorker, instantModel, onPostgres, openKernel, publishRun, TURNS } from './kernel.ts'
import { round } from './measure.ts'

const CONCURRENCY = 16
const PUBLISHERS = 16

/** What a process tells of what it did. */
interface Share {
  asked: [string, number][]
  cpuMs: number
}

type Message = { kind: 'ready' } | { kind: 'completed' } | ({ kind: 'share' } & Share)

/** The part of one process: it opens the store, begins when told to and tells of its share when told to end. */
export async function workAsProcess(): Promise<void> {
  const [url = '', schema = ''] = process.argv.slice(2)
  const tell = (message: Message): void => void process.send?.(message)
  const store = await newPostgresStore(url, { schema })
  const model = instantModel(() => tell({ kind: 'completed' }))
  const { engine } = await openKernel(store, model, { concurrency: CONCURRENCY, turnsPerClaim: 1 })
  const told = on(process, 'message')
  tell({ kind: 'ready' })
  await told.next()
  const cpu = process.cpuUsage()
  await engine.start()
  await told.next()
  await engine.stop()
  const { user, system } = process.cpuUsage(cpu)
  await store.close()
  const share: Message = { kind: 'share', asked: [...model.asked], cpuMs: (user + system) / 1000 }
  // It is long: what is not sent yet would be lost.
  process.send?.(share, () => process.disconnect())
}

async function nextOf(child: ChildProcess, kind: Message['kind']): Promise<Message> {
  for await (const [message] of on(child, 'message', { close: ['exit'] }) as AsyncIterable<[Message]>)
    if (message.kind === kind) return message
  throw new Error('a process ended')
}

/** What so many processes make of so many runs, which are all queued when they begin. @throws when one ran twice */
export async function shareRuns(
  url: string,
  processes: number,
  count: number,
): Promise<Record<string, string | number>> {
  const { schema, open } = onPostgres(url)
  const store = await open()
  const { kernel } = await openKernel(store, instantModel(), { concurrency: 1, turnsPerClaim: 1 })
  await installWorker(kernel.context)
  await inParallel(count, PUBLISHERS, () => publishRun(kernel.context))
  const children = Array.from({ length: processes }, () => fork(process.argv[1] ?? '', [url, schema]))
  await Promise.all(children.map((child) => nextOf(child, 'ready')))
  let completed = 0
  const all = new Promise<void>((resolve) => {
    const note = (message: Message): void => {
      if (message.kind === 'completed' && ++completed === count) resolve()
    }
    for (const child of children) child.on('message', note)
  })
  const begin = performance.now()
  for (const child of children) child.send('begin')
  await all
  const elapsed = performance.now() - begin
  const shares = children.map((child) => nextOf(child, 'share') as Promise<Message & Share>)
  for (const child of children) child.send('end')
  const done = await Promise.all(shares)
  for (const child of children) if (child.exitCode === null) await once(child, 'exit')
  const asked = new Map<string, number>()
  for (const [turn, times] of done.flatMap((share) => share.asked)) asked.set(turn, (asked.get(turn) ?? 0) + times)
  const { turns } = (await store.database.get<{ turns: number }>(
    `SELECT count(*) AS turns FROM kernel_turns t JOIN kernel_runs r ON r.scope = t.scope AND r.id = t.run_id
      WHERE t.status = 'completed' AND r.status = 'completed'`,
  )) ?? { turns: NaN }
  await store.close()
  const calls = [...asked.values()].reduce((sum, times) => sum + times, 0)
  return {
    processes,
    'runs/s': round((1000 * count) / elapsed),
    'turns/s': round((1000 * count * TURNS) / elapsed),
    'cpu ms/turn': round(done.reduce((sum, { cpuMs }) => sum + cpuMs, 0) / (count * TURNS)),
    'model calls': calls,
    'asked twice': calls - asked.size,
    'turns completed': turns,
  }
}
