import { writeSync } from 'node:fs'
import { systemClock } from '../../../src/base/clock.ts'
import { openDatabase, type DatabaseAddress } from '../../../src/database/open.ts'
import { GatewayMetering } from './process.ts'
import { Sealer } from '../../../src/platform/sealing/sealer.ts'
import { usageRecord } from './records.ts'

/** A process that meters calls under load, and says of each when it ended: `<time> <id>`. SIGTERM ends it cleanly. */

const [address, dataDir, keyFile] = process.argv.slice(2)
if (address === undefined || dataDir === undefined || keyFile === undefined)
  throw new Error('three arguments are needed')

const log = { info: () => undefined, warn: console.error, error: console.error }
const database = openDatabase(JSON.parse(address) satisfies DatabaseAddress)
const metering = new GatewayMetering({
  database,
  clock: systemClock,
  log,
  sealer: new Sealer(keyFile, log),
  dataDir,
  flushIntervalMs: 200,
  flushRows: 500,
  onFull: 'reject',
  states: () => [],
})
await metering.start()

const load = setInterval(() => {
  for (let i = 0; i < 20; i++) {
    metering.meter.admit()
    const now = systemClock.now()
    const record = usageRecord(now, { request_id: 'under-load' })
    metering.meter.record(record)
    writeSync(1, `${now} ${record.id}\n`)
  }
}, 10)

process.once('SIGTERM', () => {
  clearInterval(load)
  void metering
    .close()
    .then(() => database.close())
    .then(() => process.exit(0))
})
