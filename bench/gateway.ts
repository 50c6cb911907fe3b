/**
 * The model gateway under load: node bench/run.mjs gateway [--part <part>] [options]
 *
 * side (the one without --part): gateways side by side. MEM_GATEWAY_BENCH names the folder of the driver (`bench.mjs`,
 *   `mock-upstream.mjs`), which starts direct, bare proxies, the peers and this gateway in turn and prints what each costs;
 *   options are the driver's. Ours runs with everything on: a key with limits and a budget, three weighted credentials with
 *   limits, metrics, usage records. A provider of 50 ms whose connections ask again as soon as they are answered:
 *     node bench/run.mjs gateway --targets direct,undici-dispatch,ours --scenarios json50 --all --rounds 5 --seconds 5
 * rate [--rate 2000] [--seconds 10]: a provider of 50 ms at 128 connections and a fixed rate: direct, bare proxy, ours. With
 *   the driver's provider and proxy, as translation.
 * translation [--seconds 4]: what answers of a provider of the other dialect cost beside those of one's own.
 * exact [--calls 10000]: calls of every sort, with streams, clients that go, retries, fallbacks and hits of the cache; to the end,
 *   over SIGTERM and over kill -9 in the middle. Records, analytics, cost and metrics must equal what the provider told.
 * weights [--calls 50000]: shares of three weighted credentials, one of which goes down and returns: within one in a hundred.
 * streams [--minutes 10] [--streams 500]: so many streams at once; memory must stay flat.
 * soak [--minutes 30] [--rate 150]: calls of every sort; memory must stay flat, the books exact.
 * streams and soak write a line a minute to --out (node_modules/.cache/bench/memory.jsonl).
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { packageRoot } from '../src/base/package-root.ts'
import { configFor, credentialsFor } from '../test/support/gateway-load/calls.ts'
import { startLoadProvider } from '../test/support/gateway-load/provider.ts'
import { isExact } from './support/gateway-exact.ts'
import { install, PROGRAM, SERVICES } from './support/gateway-server.ts'
import { holdsRate } from './support/gateway-rate.ts'
import { holdsStreams, soaks } from './support/gateway-soak.ts'
import { translates, translationCredentials } from './support/gateway-translation.ts'
import { driverFile } from './support/gateway-upstream.ts'
import { keepsWeights } from './support/gateway-weights.ts'
import { machine } from './support/measure.ts'

/** The driver's. */
const UPSTREAM_PORT = 9901
const PORT = 9941
const BARE_PORT = 9942
/** As `npm start`, the image and the service of docs/run-as-a-service.md start it. */
const ROOM = '--max-semi-space-size=32'

/** Each in a folder of its own, as the driver wants them; the overrides let the published peer stream. */
const PEERS = {
  proxies: { dependencies: { undici: '7', fastify: '5', hono: '4', '@hono/node-server': '1' } },
  portkey: {
    dependencies: { '@portkey-ai/gateway': '1.15.2' },
    overrides: { hono: '4.9.7', '@hono/node-server': '1.13.5' },
  },
  llms: { dependencies: { '@musistudio/llms': '1.0.53' } },
}

function installed(name: keyof typeof PEERS): string {
  const directory = join(packageRoot, 'node_modules/.cache/bench-peers/gateway', name)
  if (existsSync(join(directory, 'node_modules'))) return directory
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ private: true, ...PEERS[name] }))
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: directory, stdio: 'inherit' })
  return directory
}

/** @returns whether the driver came to its end */
async function sideBySide(directory: string, given: readonly string[]): Promise<boolean> {
  const { env, key } = await install(directory, configFor(UPSTREAM_PORT), credentialsFor(UPSTREAM_PORT))
  const ours = {
    name: 'ours',
    cmd: [process.execPath, ROOM, PROGRAM, 'serve', ...SERVICES, '--addr', `127.0.0.1:${PORT}`],
    cwd: directory,
    env,
    url: `http://127.0.0.1:${PORT}/rest/v1/llm-gateway/v1/chat/completions`,
    headers: { authorization: `Bearer ${key}` },
  }
  const { status } = spawnSync(process.execPath, [driverFile('bench.mjs'), ...given], {
    cwd: directory,
    stdio: 'inherit',
    env: {
      ...process.env,
      BENCH_MODULES: installed('proxies'),
      PORTKEY_DIR: installed('portkey'),
      LLMS_DIR: installed('llms'),
      OURS: JSON.stringify(ours),
    },
  })
  return status === 0
}

const { values } = parseArgs({
  strict: false,
  options: {
    part: { type: 'string', default: 'side' },
    calls: { type: 'string' },
    minutes: { type: 'string' },
    rate: { type: 'string' },
    seconds: { type: 'string' },
    streams: { type: 'string', default: '500' },
    out: { type: 'string', default: 'node_modules/.cache/bench/memory.jsonl' },
  },
})
const given = (name: 'calls' | 'minutes' | 'rate' | 'seconds' | 'streams', otherwise = 0): number =>
  Number(values[name] ?? otherwise)

async function run(directory: string): Promise<boolean> {
  console.log(machine())
  switch (values.part) {
    case 'side':
      return sideBySide(directory, process.argv.slice(2))
    case 'rate':
      return holdsRate(await install(directory, configFor(UPSTREAM_PORT), credentialsFor(UPSTREAM_PORT)), {
        upstream: UPSTREAM_PORT,
        bare: BARE_PORT,
        modules: installed('proxies'),
        rate: given('rate', 2000),
        seconds: given('seconds', 10),
      })
    case 'translation':
      return translates(await install(directory, configFor(UPSTREAM_PORT), translationCredentials(UPSTREAM_PORT)), {
        upstream: UPSTREAM_PORT,
        seconds: given('seconds', 4),
      })
    default:
      return counted(directory)
  }
}

/** The parts whose provider counts what it is asked. */
async function counted(directory: string): Promise<boolean> {
  const provider = await startLoadProvider()
  const out = String(values.out)
  try {
    const installation = await install(directory, configFor(provider.port), credentialsFor(provider.port))
    switch (values.part) {
      case 'exact':
        return await isExact(installation, provider, given('calls', 10_000))
      case 'weights':
        return await keepsWeights(installation, provider, given('calls', 50_000))
      case 'streams':
        return await holdsStreams(installation, provider, {
          minutes: given('minutes', 10),
          streams: given('streams'),
          out,
        })
      case 'soak':
        return await soaks(installation, provider, { minutes: given('minutes', 30), rate: given('rate', 150), out })
      default:
        throw new Error(`there is no part ${String(values.part)}`)
    }
  } finally {
    await provider.close()
  }
}

const directory = mkdtempSync(join(tmpdir(), 'mem-bench-'))
try {
  process.exitCode = (await run(directory)) ? 0 : 1
} finally {
  // After the servers, which end with this process at the latest.
  process.once('exit', () => rmSync(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }))
}
