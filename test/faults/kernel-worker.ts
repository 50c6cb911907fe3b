import { pino } from 'pino'
import { Engine } from '../../src/kernel/engine/engine.ts'
import { createModelHost } from '../../src/kernel/engine/model-host.ts'
import { Kernel } from '../../src/kernel/service.ts'
import { newPostgresStore, newSqliteStore } from '../../src/kernel/store/store.ts'

/** A process that works on runs until it is stopped, or kills itself at the step that KERNEL_KILL_AT names. */

const { KERNEL_STORE = '', KERNEL_MODEL = '', KERNEL_KILL_AT } = process.env
const LEASE_MS = 400

const store = await (KERNEL_STORE.startsWith('postgres')
  ? newPostgresStore(KERNEL_STORE)
  : newSqliteStore(KERNEL_STORE))
const kernel = new Kernel({ store, log: pino({ level: 'warn' }, pino.destination(2)), components: [] })
const engine = new Engine(kernel.context, kernel.hints, {
  modelHost: createModelHost({ baseUrl: KERNEL_MODEL, model: 'scripted' }),
  runWorkers: [
    {
      scopes: [{ kind: 'test', id: 'faults' }],
      concurrency: 4,
      maxActivePerAgent: 0,
      leaseMs: LEASE_MS,
      pollIntervalMs: 25,
    },
  ],
  onStep: (step) => {
    if (step === KERNEL_KILL_AT) process.kill(process.pid, 'SIGKILL')
  },
})
await engine.start()
process.once('SIGTERM', () => {
  engine
    .stop()
    .then(() => store.close())
    .catch(() => process.exit(1))
})
