import { pino } from 'pino'
import { createSkillCatalog } from '../../src/kernel/actions/catalog.ts'
import { createHttpTransport } from '../../src/kernel/actions/http-transport.ts'
import { claimAction } from '../../src/kernel/actions/worker.ts'
import { createUuidSource } from '../../src/base/ids.ts'
import { systemClock } from '../../src/base/clock.ts'
import type { KernelContext } from '../../src/kernel/context.ts'
import { newPostgresStore, newSqliteStore } from '../../src/kernel/store/store.ts'

/** A process that makes one call and dies where it is told to. */

const [dialect = '', address = '', scopeId = '', point = '', skill = ''] = process.argv.slice(2)
const die = (): void => void process.kill(process.pid, 'SIGKILL')
const http = createHttpTransport()

const context: KernelContext = {
  store: await (dialect === 'sqlite' ? newSqliteStore(address) : newPostgresStore(address)),
  newId: createUuidSource(systemClock),
  log: pino({ enabled: false }),
  endings: [],
  hint: () => {},
  actions: {
    catalog: createSkillCatalog([JSON.parse(skill)]),
    policy: { evaluate: () => ({ outcome: 'allow' }) },
    // Asked again between the claim and the mark.
    validators: [
      () => {
        if (point === 'claimed') die()
        return undefined
      },
    ],
    transports: {
      http: {
        async execute(dispatch) {
          if (point === 'marked') die()
          const outcome = await http.execute(dispatch)
          if (point === 'answered') die()
          return outcome
        },
      },
    },
    credentials: { resolve: async () => 'unused' },
  },
}

const scope = { kind: 'test', id: scopeId }
const abandoned = new AbortController().signal
const make = await claimAction(context, { scope, id: 'mortal', leaseMs: 60_000, heartbeatMs: 20_000, abandoned })
if (!make) throw new Error('there is no call to make')
await make()
die()
