/** A kernel to measure: its engine in this process, an agent that works, a model that answers at once. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { assemble, type Assembled } from '../../src/kernel/assemble.ts'
import { BY_KERNEL, makeChange } from '../../src/kernel/change.ts'
import type { KernelContext } from '../../src/kernel/context.ts'
import { checkOptions } from '../../src/kernel/engine-options.ts'
import { installAgent as installation } from '../../src/kernel/model/deployment.ts'
import type { Run } from '../../src/kernel/model/run.ts'
import type { ModelHost } from '../../src/kernel/ports.ts'
import { installAgent } from '../../src/kernel/registry/install.ts'
import { createRun } from '../../src/kernel/runs/create.ts'
import { makeShared } from '../../src/kernel/shared-changes.ts'
import { newPostgresStore, newSqliteStore, type KernelStore } from '../../src/kernel/store/store.ts'

export const SCOPE = { kind: 'local', id: 'default' }
export const TURNS = 5
const AGENT = { type: 'agent', id: 'bench' } as const

/** A store and what removes it. */
export interface Place {
  name: string
  open(): Promise<KernelStore>
  remove(): void
}

let schemas = 0

export const onPostgres = (url: string): Place & { schema: string } => {
  const schema = `kernel_${process.pid}_${++schemas}`
  return { name: 'PostgreSQL', schema, open: () => newPostgresStore(url, { schema }), remove: () => {} }
}

export function onSqlite(): Place {
  const directory = mkdtempSync(join(tmpdir(), 'mem-bench-'))
  return {
    name: 'SQLite',
    open: () => newSqliteStore(join(directory, 'kernel.db')),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  }
}

export interface CountingModel extends ModelHost {
  /** How often each turn was asked for, by run and number. */
  readonly asked: ReadonlyMap<string, number>
  /** Runs that it called completed. */
  readonly completed: number
}

/** Answers at once: four turns go on, the fifth completes the run. */
export function instantModel(onCompleted = (): void => {}): CountingModel {
  const asked = new Map<string, number>()
  let completed = 0
  return {
    asked,
    get completed() {
      return completed
    },
    async propose({ invocationId, run: { id, turn } }) {
      const key = `${id} ${turn}`
      asked.set(key, (asked.get(key) ?? 0) + 1)
      const isLast = turn === TURNS
      if (isLast) {
        completed++
        onCompleted()
      }
      const outcome = {
        invocationId,
        status: isLast ? 'completed' : 'running',
        summary: `Step ${turn}`,
        skillDispositions: [],
      }
      return {
        outcome: { ...outcome, ...(isLast ? { output: { steps: turn } } : { checkpoint: { step: turn } }) },
        usage: { inputTokens: 100, outputTokens: 20, costMicros: 0 },
      }
    },
  }
}

export interface Workers {
  concurrency: number
  turnsPerClaim: number
}

/** Not started yet. All runs are of one agent, which is not what bounds them. */
export const openKernel = (store: KernelStore, modelHost: ModelHost, workers: Workers): Promise<Assembled> =>
  assemble(
    checkOptions({
      store,
      modelHost,
      workerConcurrencyLimit: workers.concurrency,
      agentRunWorkers: { scopes: [SCOPE], ...workers, maxActivePerAgent: 0 },
    }),
    pino({ level: 'warn' }, pino.destination(2)),
  )

export async function installWorker(context: KernelContext): Promise<void> {
  const manifest = {
    id: AGENT.id,
    version: '1.0.0',
    displayName: 'Bench',
    purpose: 'Takes five steps',
    systemPrompt: 'Take the next step.',
    authority: { maximumRisk: 'read', maxConcurrentRuns: 1000 },
    skillRequirements: [],
  }
  const request = {
    scope: SCOPE,
    manifest,
    deployment: { id: AGENT.id, environment: 'bench', capacity: { maxConcurrentRuns: 1000 } },
    actorType: 'user',
    actorId: 'bench',
  }
  await makeChange(context, SCOPE, BY_KERNEL, (change) => installAgent(change, installation.parse(request), {}))
}

export async function publishRun(context: KernelContext, goal = 'Take five steps'): Promise<Run> {
  const id = context.newId()
  return (await makeShared(context, SCOPE, BY_KERNEL, (change) => createRun(change, { id, owner: AGENT, goal }))).result
}

/** So many things at once until all are done. */
export async function inParallel(
  count: number,
  atOnce: number,
  one: (number: number) => Promise<unknown>,
): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) await one(next++)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}
