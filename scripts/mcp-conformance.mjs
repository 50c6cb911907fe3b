// Runs the official conformance suite of the tools protocol against our protocol code: node scripts/mcp-conformance.mjs [flag of the suite ...]
// The suite and the Node it needs are installed once, beside the project: never into it, where that Node would be the one
// that npm scripts find. test/mcp/expected-failures.yaml says what may fail; any difference, either way, ends with 1.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
const cache = join(root, 'node_modules/.cache/mcp-conformance')
const packages = {
  node: 'node@22.23.3',
  released: 'released@npm:@modelcontextprotocol/conformance@0.1.16',
  // The first to know the revision of 2026-07-28; it also validates every message against the schemas of the protocol.
  preview: 'preview@npm:@modelcontextprotocol/conformance@0.2.0-alpha.12',
}
const runs = [
  ['released', '2025-11-25'],
  ['preview', '2025-11-25'],
  ['preview', '2026-07-28'],
]
const RUN_MS = 240_000

function install() {
  if (Object.keys(packages).every((name) => existsSync(join(cache, 'node_modules', name)))) return
  console.log(`Installing ${Object.values(packages).join(', ')} into ${cache}`)
  const flags = ['install', '--prefix', cache, '--no-audit', '--no-fund', '--loglevel=error']
  const { status } = spawnSync('npm', [...flags, ...Object.values(packages)], { stdio: 'inherit' })
  if (status !== 0) throw new Error('npm could not install the conformance suite')
}

/** Our code in the shape of a program, as the benchmarks are. */
async function bundleServer() {
  const outfile = join(root, 'node_modules/.cache/mcp-conformance-server.mjs')
  await build({
    entryPoints: [join(root, 'test/mcp/conformance-server.ts')],
    outfile,
    bundle: true,
    packages: 'external',
    format: 'esm',
    platform: 'node',
    target: 'node20',
    logLevel: 'warning',
  })
  return outfile
}

async function startServer(dataDir) {
  const server = spawn(process.execPath, [await bundleServer(), dataDir], { stdio: ['pipe', 'pipe', 'inherit'] })
  const [url] = await Promise.race([once(server.stdout, 'data'), once(server, 'exit')])
  if (!Buffer.isBuffer(url)) throw new Error('the server did not start')
  return { url: `${url.toString().trim()}/mcp`, stop: () => server.stdin.end() }
}

function run(url, suite, revision) {
  console.log(`\n== ${suite} suite, revision ${revision}`)
  const program = join(cache, 'node_modules', suite, 'dist/index.js')
  const expected = join(root, 'test/mcp/expected-failures.yaml')
  const what = ['--suite', 'all', '--spec-version', revision, '--expected-failures', expected, ...process.argv.slice(2)]
  const { status, stdout } = spawnSync(
    join(cache, 'node_modules/node/bin/node'),
    [program, 'server', '--url', url, ...what],
    { cwd: cache, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], timeout: RUN_MS, maxBuffer: 2 ** 27 },
  )
  console.log(status === 0 ? stdout.slice(stdout.lastIndexOf('=== SUMMARY ===')) : stdout)
  return status === 0
}

install()
const dataDir = mkdtempSync(join(tmpdir(), 'mem-conformance-'))
const server = await startServer(dataDir)
try {
  const results = runs.map(([suite, revision]) => run(server.url, suite, revision))
  process.exitCode = results.every(Boolean) ? 0 : 1
} finally {
  server.stop()
  rmSync(dataDir, { recursive: true, force: true })
}
