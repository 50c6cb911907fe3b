/**
 * Model gateways side by side: node bench/run.mjs gateway [--targets ... --scenarios ... of the driver]
 * MEM_GATEWAY_BENCH names the folder of the driver (`bench.mjs`, `mock-upstream.mjs`), which starts direct, bare proxies,
 * the peers and this gateway in turn and prints what each costs. Ours runs with everything on: a key with limits and a
 * budget, three weighted credentials with limits, metrics, usage records.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { packageRoot } from '../src/base/package-root.ts'
import { startServer } from '../test/support/server.ts'
import { machine } from './support/measure.ts'

const UPSTREAM = 'http://127.0.0.1:9901/v1'
const PORT = 9941
const PASSWORD = 'bench bench bench'
const PROGRAM = join(packageRoot, 'bin/mem.js')

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

const driver = process.env['MEM_GATEWAY_BENCH'] ?? ''
if (!existsSync(join(driver, 'bench.mjs'))) {
  console.error('name the folder of the driver in MEM_GATEWAY_BENCH')
  process.exit(2)
}
const directory = mkdtempSync(join(tmpdir(), 'mem-bench-'))
const config = join(directory, 'mem.yaml')
writeFileSync(config, 'gateway:\n  allowed_hosts: [127.0.0.1:9901]\ntelemetry:\n  log_level: info\n')
const env = { HOME: directory, MEM_CONFIG: config, MEM_DATA_DIR: join(directory, 'data'), MEM_PASSWORD: PASSWORD }
const services = ['--services', 'platform,gateway']

const run = (...args: string[]): string =>
  execFileSync(process.execPath, [PROGRAM, ...args], { env: { ...process.env, ...env }, encoding: 'utf8' })

/** Three credentials in the shares of the driver's peers, and a key. */
async function prepare(): Promise<string> {
  run('platform', 'init', '--organization', 'Bench', '--email', 'bench@example.org')
  const server = await startServer({ directory, env, args: services })
  const call = async (path: string, body: object, token = ''): Promise<{ token: string }> => {
    const response = await fetch(`${server.url}/rest/v1/${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...(token !== '' && { Authorization: `Bearer ${token}` }) },
      body: JSON.stringify(body),
    })
    const answer = (await response.json()) as { token: string }
    if (!response.ok) throw new Error(JSON.stringify(answer))
    return answer
  }
  const { token } = await call('platform/login', { email: 'bench@example.org', password: PASSWORD })
  const limits = { requests_per_minute: 100_000_000, max_concurrency: 10_000 }
  for (const [name, weight] of Object.entries({ a: 0.5, b: 0.3, c: 0.2 })) {
    const provider = { provider: 'openai-compatible', base_url: UPSTREAM, api_key: `up-${name}-000000000000` }
    await call('llm-gateway/credentials', { ...provider, name, weight, limits }, token)
  }
  const budget = { limit_usd: '100000', window: 'month', unknown_price: 'allow' }
  const key = await call('llm-gateway/keys', { name: 'bench', limits, budget }, token)
  await server.stop()
  return key.token
}

try {
  const key = await prepare()
  const ours = {
    name: 'ours',
    cmd: [process.execPath, PROGRAM, 'serve', ...services, '--addr', `127.0.0.1:${PORT}`],
    cwd: directory,
    env,
    url: `http://127.0.0.1:${PORT}/rest/v1/llm-gateway/v1/chat/completions`,
    headers: { authorization: `Bearer ${key}` },
  }
  console.log(machine())
  const given = process.argv.slice(2)
  const { status } = spawnSync(process.execPath, [join(driver, 'bench.mjs'), ...given], {
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
  process.exitCode = status ?? 1
} finally {
  rmSync(directory, { recursive: true, force: true })
}
