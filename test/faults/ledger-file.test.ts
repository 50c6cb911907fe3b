import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { runCli } from '../cli/run-cli.ts'
import { openDatabase } from '../../src/database/open.ts'
import { dropLeases } from '../../src/memory/store/outbox.ts'
import { createWorkspace } from './http.ts'
import { createPlace, describeOnBothDatabases } from './place.ts'
import { Writer } from './writer.ts'

const WRITERS = 8

describeOnBothDatabases('kill -9 with the ledger in a file', (dialect) => {
  it(
    'memory#115 memory#133 each acknowledged write is in it, each entry once, the chain valid',
    { timeout: 120_000 },
    async () => {
      const place = await createPlace(dialect)
      onTestFinished(() => place.remove())
      const path = join(place.directory, 'ledger.jsonl')
      const start = () => place.start({ MEM_LEDGER_DRIVER: 'file', MEM_LEDGER_DSN: path })
      const acknowledged: { requestId: string; op: string }[] = []
      let workspace = ''
      for (const seed of [1, 2, 3]) {
        const server = await start()
        workspace = await createWorkspace(server)
        const writers = Array.from(
          { length: WRITERS },
          (_, i) => new Writer(workspace, `w${seed}-${i}`, seed * WRITERS + i),
        )
        let left = 60 * seed
        let killed: Promise<void> | undefined
        await Promise.all(
          writers.map((writer) =>
            writer.run(server, () => {
              if (--left === 0) killed = server.kill()
            }),
          ),
        )
        await killed
        // Else the next server waits until the lease of the dead one has ended, as it must.
        const stores = openDatabase(place.address)
        await stores.transaction(dropLeases)
        await stores.close()
        acknowledged.push(...writers.flatMap((writer) => writer.acknowledged))
        appendFileSync(path, '{"ledger_id":"lg_cut off in the mid')
      }
      const last = await start()
      await createWorkspace(last)
      expect(await last.stop()).toBe(0)
      const entries = readFileSync(path, 'utf8')
        .trimEnd()
        .split('\n')
        .map((line): { ledger_id: string; request_id: string; op: string } => JSON.parse(line))
      expect(new Set(entries.map((entry) => entry.ledger_id)).size).toBe(entries.length)
      for (const { requestId, op } of acknowledged) {
        expect(entries.filter((entry) => entry.request_id === requestId && entry.op === op)).toHaveLength(1)
      }
      const verified = await runCli(['ledger', 'verify', '-o', 'json'], {
        env: {
          ...place.env,
          HOME: place.directory,
          MEM_DATA_DIR: join(place.directory, 'data'),
          MEM_LEDGER_DRIVER: 'file',
          MEM_LEDGER_DSN: path,
        },
      })
      expect(verified).toMatchObject({ code: 0 })
    },
  )
})
