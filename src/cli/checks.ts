import { X509Certificate } from 'node:crypto'
import { accessSync, constants, existsSync, readFileSync, statfsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { addressOf } from '../app/database.ts'
import { embedderSettings } from '../app/memory.ts'
import { examinePlatform } from '../app/platform.ts'
import { contentAddress, requireKnownSchema } from '../app/stores.ts'
import { systemClock } from '../base/clock.ts'
import { errorText } from '../base/errors.ts'
import { createIdSource } from '../base/ids.ts'
import { createLogger } from '../base/log.ts'
import { MemoryNetworkError } from '../client/errors.ts'
import { MemoryClient } from '../client/memory-client.ts'
import { parseAddress } from '../config/address.ts'
import { maskPassword, type Store } from '../config/dsn.ts'
import type { Config, Sources } from '../config/load.ts'
import { refuseDamaged } from '../database/damage.ts'
import { MigrationError } from '../database/migrate.ts'
import { openDatabase } from '../database/open.ts'
import { createEmbedder } from '../memory/embedder/registry.ts'
import { openContent } from '../memory/store/content/open.ts'
import { missingPgvector } from '../memory/store/vector/pgvector-setup.ts'
import { NETWORK_HINTS } from './error-report.ts'
import { failed, ok, warning, type Finding, type Found } from './finding.ts'
import { examineKernel } from './kernel/checks.ts'

const ROOM_BYTES = 1024 ** 3
const CERTIFICATE_MS = 30 * 86_400_000

/** Tries all that the server will need, without making or changing anything. */
export async function examine(config: Config, env: Sources['env']): Promise<Finding[]> {
  const findings: Finding[] = []
  const check = async (name: string, work: () => Found | Promise<Found>): Promise<void> => {
    findings.push({ check: name, ...(await work()) })
  }
  await check('data directory', () => checkDataDir(config))
  for (const [name, store] of distinctStores(config)) await check(name, () => checkStore(config, store))
  // A store that fails says so itself.
  if (!findings.some(({ state }) => state === 'failed')) await check('platform', () => checkPlatform(config))
  await check(`model ${config.embedding.model}`, () => checkModel(config))
  findings.push(...(await examineKernel(config, env)))
  if (config.server.tls.enabled) await check('certificate', () => checkCertificate(config))
  await check('server', () => checkServer(config))
  return findings
}

function checkDataDir({ storage: { data_dir } }: Config): Found {
  const directory = nearest(resolve(data_dir))
  try {
    accessSync(directory, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    return failed(errorText(error), `Give this user the right to write ${directory}, or choose another --data-dir.`)
  }
  const { bavail, bsize } = statfsSync(directory)
  const free = `${((bavail * bsize) / 1024 ** 3).toFixed(1)} GiB free`
  if (bavail * bsize < ROOM_BYTES)
    return warning(`${data_dir}: ${free}`, 'Make room: writes fail when the disk is full.')
  return ok(`${data_dir}, ${free}`)
}

/** The path, or of what is not there yet the directory that it will be made in. */
const nearest = (path: string): string => (existsSync(path) ? path : nearest(dirname(path)))

/** Stores by what they hold; those in one database together. */
function distinctStores({ stores }: Config): [name: string, store: Store<string>][] {
  const byDsn = new Map<string, { seams: string[]; store: Store<string> }>()
  for (const [seam, store] of Object.entries(stores)) {
    if (store) byDsn.set(store.dsn, { store, seams: [...(byDsn.get(store.dsn)?.seams ?? []), seam] })
  }
  return [...byDsn.values()].map(({ seams, store }) => [seams.join(', '), store])
}

async function checkStore(config: Config, store: Store<string>): Promise<Found> {
  const place = `${store.driver} ${maskPassword(store.dsn)}`
  if (store.driver === 'file') return checkFiles(store.dsn, place)
  if (store.driver === 's3') return checkS3(config, place)
  if (store.driver === 'sqlite' && !existsSync(store.dsn)) return ok(`${place}, made at the first start`)
  try {
    const database = openDatabase({ ...addressOf(config, store), readonly: true })
    try {
      await database.ping()
      if (store.driver === 'sqlite') refuseDamaged(store.dsn, 'it', true)
      await requireKnownSchema(database)
      const { vector } = config.stores
      const needsPgvector = vector.driver === 'pgvector' && vector.dsn === store.dsn
      const problem = needsPgvector ? await missingPgvector(database) : undefined
      if (problem !== undefined) return failed(place, problem)
    } finally {
      await database.close()
    }
    return ok(`${place} answers`)
  } catch (error) {
    if (error instanceof MigrationError)
      return failed(`${place}: ${error.message}`, 'The server does not start with it.')
    const fix =
      store.driver === 'sqlite'
        ? 'Is it a SQLite file that this user may read and write, and whole? `mem backup restore` brings a copy back.'
        : 'Is PostgreSQL running there, and does the DSN name user, password and database?'
    return failed(`${place}: ${maskPassword(errorText(error))}`, fix)
  }
}

async function checkPlatform(config: Config): Promise<Found> {
  const { metadata } = config.stores
  const none = ok('no organization yet: `mem platform init` makes the first')
  if (metadata.driver === 'sqlite' && !existsSync(metadata.dsn)) return none
  const log = createLogger(config.telemetry.log_level, config.telemetry.log_format)
  try {
    const isInitialized = await examinePlatform(config, { clock: systemClock, ids: createIdSource(systemClock), log })
    return isInitialized ? ok(`its secrets are sealed with ${config.platform.key_file}`) : none
  } catch (error) {
    return failed(errorText(error), 'The server does not start with it.')
  }
}

function checkFiles(path: string, place: string): Found {
  const there = nearest(path)
  try {
    accessSync(there, constants.R_OK | constants.W_OK)
    return ok(there === path ? `${place} can be written` : `${place}, made with the first write`)
  } catch (error) {
    return failed(`${place}: ${errorText(error)}`, `Give this user the right to read and write ${there}.`)
  }
}

async function checkS3(config: Config, place: string): Promise<Found> {
  const { content } = config.stores
  if (!content) throw new Error('S3 keeps content and nothing else')
  try {
    await openContent(contentAddress(config, content), systemClock, undefined).ping()
    return ok(`${place} answers at ${maskPassword(config.s3.endpoint)}`)
  } catch (error) {
    return failed(errorText(error), 'Check storage.content_dsn, AWS_ENDPOINT_URL, AWS_REGION and the AWS_ keys.')
  }
}

async function checkModel(config: Config): Promise<Found> {
  const { model, timeout } = config.embedding
  try {
    const embedder = createEmbedder(model, embedderSettings(config))
    const [vector] = await embedder.embed(['mem doctor'], 'document', AbortSignal.timeout(timeout))
    const remark = embedder.quality === 'fallback' ? '; lexical: it finds words, not synonyms' : ''
    return ok(`gives vectors of ${vector?.length} values${remark}`)
  } catch (error) {
    return failed(
      errorText(error),
      'Check embedding.model, its key and its URL; until then recall finds by keyword only.',
    )
  }
}

function checkCertificate({ server: { tls }, storage }: Config): Found {
  const file = tls.cert_file ?? resolve(storage.data_dir, 'tls/server.crt')
  if (!existsSync(file)) return ok(`${file}, made at the first start`)
  const { validTo } = new X509Certificate(readFileSync(file))
  const left = Date.parse(validTo) - systemClock.now()
  const message = `${file} ends ${validTo}`
  if (left < 0) return failed(message, 'Renew it (`mem init-cert`) and send the server SIGHUP.')
  return left < CERTIFICATE_MS ? warning(message, 'Renew it and send the server SIGHUP.') : ok(message)
}

async function checkServer(config: Config): Promise<Found> {
  const { addr, tls } = config.server
  const { host = '', port = 7777 } = parseAddress(addr) ?? {}
  const name = host === '' || host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  const url = `${tls.enabled ? 'https' : 'http'}://${name.includes(':') ? `[${name}]` : name}:${port}`
  try {
    const { ok: isReady, adapter } = await new MemoryClient(url, config.apiKey, { timeoutMs: 3000 }).ready()
    if (isReady) return ok(`${url} is ready`)
    return failed(`${url} is degraded: ${JSON.stringify(adapter)}`, "See the stores above, and the server's log.")
  } catch (error) {
    const code = error instanceof MemoryNetworkError ? (error.code ?? '') : ''
    if (code === 'ECONNREFUSED') return ok(`not running on ${url}`)
    return warning(
      `${url}: ${errorText(error)}`,
      NETWORK_HINTS[code] ?? 'Does another program have this port, or a server with another key or certificate?',
    )
  }
}
