import { pino } from 'pino'
import {
  createModelHost,
  createSkillCatalog,
  KernelEngine,
  newPostgresStore,
  newSqliteStore,
} from '../../src/kernel/index.ts'

/** A program that embeds the kernel, and works on runs and their actions until it is killed. */

const [address = '', model = '', skill = ''] = process.argv.slice(2)
const workers = { scopes: [{ kind: 'test', id: 'random' }], concurrency: 4, leaseMs: 500 }
const engine = new KernelEngine({
  persistentStore: await (address.startsWith('postgres') ? newPostgresStore(address) : newSqliteStore(address)),
  logger: pino({ level: 'error' }, pino.destination(2)),
  skillCatalog: await createSkillCatalog([JSON.parse(skill)]),
  modelHost: createModelHost({ baseUrl: model, model: 'scripted' }),
  actionPolicy: { evaluate: () => ({ outcome: 'allow' }) },
  agentRunWorkers: { ...workers, pollIntervalMs: 25, maxActivePerAgent: 0 },
  actionWorkers: workers,
})
await engine.start()
