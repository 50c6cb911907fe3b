/**
 * Runs of agents: node bench/run.mjs kernel [--parts turns,dormant,processes] [--runs 500] [--dormant 10000]
 * [--operations 500] [--shared 2000]. The model answers at once: what is measured is the kernel.
 *
 * turns: runs of five turns, all in one scope, from the first that is published to the end of the last; beside them the same
 * five steps as workflows of @dbos-inc/dbos-sdk on the same PostgreSQL, which flushes every commit to the disk.
 * dormant: what a scope full of waiting runs costs those that work. processes: several share the runs of one PostgreSQL.
 */
import { parseArgs } from 'node:util'
import { startPostgres } from '../test/support/postgres-server.ts'
import { startDbos } from './support/dbos.ts'
import { compareDormant } from './support/kernel-dormant.ts'
import { shareRuns, workAsProcess } from './support/kernel-processes.ts'
import {
  inParallel,
  installWorker,
  instantModel,
  onPostgres,
  onSqlite,
  openKernel,
  publishRun,
  TURNS,
  type Place,
  type Workers,
} from './support/kernel.ts'
import { machine, printTable, round } from './support/measure.ts'

const WARM_UP = 20
const PUBLISHERS = 16

/** How the engine may be set: as it comes but for its concurrency, and keeping a run until it ends. */
const SETTINGS: Workers[] = [
  { concurrency: 16, turnsPerClaim: 1 },
  { concurrency: 16, turnsPerClaim: TURNS },
  { concurrency: 100, turnsPerClaim: 1 },
  { concurrency: 100, turnsPerClaim: TURNS },
]

/** From the first that is published to the end of the last. */
async function measureTurns(place: Place, workers: Workers, runs: number): Promise<Record<string, string | number>> {
  const store = await place.open()
  let ended = (): void => {}
  const model = instantModel(() => ended())
  const { kernel, engine } = await openKernel(store, model, workers)
  const work = async (count: number): Promise<void> => {
    const before = model.completed
    const end = new Promise<void>((resolve) => (ended = () => model.completed - before === count && resolve()))
    await inParallel(count, PUBLISHERS, () => publishRun(kernel.context))
    await end
  }
  await installWorker(kernel.context)
  await engine.start()
  await work(Math.min(runs, WARM_UP))
  const cpu = process.cpuUsage()
  const begin = performance.now()
  await work(runs)
  await engine.stop()
  const rates = ratesOf(runs, performance.now() - begin, cpu)
  await store.close()
  place.remove()
  return { what: `mem, ${place.name}, ${workers.concurrency} at once, ${workers.turnsPerClaim} a claim`, ...rates }
}

async function measurePeer(url: string, runs: number): Promise<Record<string, string | number>[]> {
  const workflows = await startDbos(url, TURNS)
  const rows = []
  for (const atOnce of [PUBLISHERS, runs]) {
    await inParallel(Math.min(runs, WARM_UP), atOnce, () => workflows.run())
    const cpu = process.cpuUsage()
    const begin = performance.now()
    await inParallel(runs, atOnce, () => workflows.run())
    rows.push({ what: `dbos, PostgreSQL, ${atOnce} at once`, ...ratesOf(runs, performance.now() - begin, cpu) })
  }
  await workflows.close()
  return rows
}

const ratesOf = (runs: number, elapsed: number, before: NodeJS.CpuUsage): Record<string, number> => {
  const { user, system } = process.cpuUsage(before)
  return {
    'runs/s': round((1000 * runs) / elapsed),
    'turns/s': round((1000 * runs * TURNS) / elapsed),
    'cpu ms/turn': round((user + system) / 1000 / (runs * TURNS)),
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      parts: { type: 'string', default: 'turns,dormant,processes' },
      runs: { type: 'string', default: '500' },
      dormant: { type: 'string', default: '10000' },
      operations: { type: 'string', default: '500' },
      shared: { type: 'string', default: '2000' },
    },
  })
  const parts = values.parts.split(',')
  const postgres = await startPostgres([])
  if (!postgres) throw new Error(`npm has no PostgreSQL for ${process.platform}-${process.arch}`)
  const { url } = postgres
  try {
    console.log(machine())
    if (parts.includes('turns')) {
      const runs = Number(values.runs)
      const rows: Record<string, string | number>[] = []
      for (const workers of SETTINGS) {
        rows.push(await measureTurns(onSqlite(), workers, runs))
        rows.push(await measureTurns(onPostgres(url), workers, runs))
      }
      rows.push(...(await measurePeer(url, runs)))
      console.log(`${runs} runs of ${TURNS} turns (target: 300 turns/s, and ahead of dbos)`)
      printTable(rows)
    }
    if (parts.includes('dormant')) {
      const [dormant, operations] = [Number(values.dormant), Number(values.operations)]
      const rows = []
      for (const open of [onSqlite, () => onPostgres(url)])
        rows.push(...(await compareDormant(open, dormant, operations)))
      console.log(
        `p95 in ms of ${operations} with ${dormant} and ${dormant / 100} dormant runs in the scope (target: 1.5 times)`,
      )
      printTable(rows)
    }
    if (parts.includes('processes')) {
      const shared = Number(values.shared)
      const rows = []
      for (const processes of [1, 2, 4]) rows.push(await shareRuns(url, processes, shared))
      console.log(`${shared} runs of ${TURNS} turns shared by processes over one PostgreSQL`)
      printTable(rows)
    }
    console.log(machine())
  } finally {
    await postgres.stop()
  }
}

await (process.send ? workAsProcess() : main())
