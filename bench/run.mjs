// Bundles a benchmark and runs it: node bench/run.mjs <name> [argument ...]
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const [name, ...args] = process.argv.slice(2)
const root = fileURLToPath(new URL('..', import.meta.url))
const outdir = `${root}node_modules/.cache/bench/`

await build({
  entryPoints: { [name]: `${root}bench/${name}.ts`, 'search-worker': `${root}src/memory/search/worker.ts` },
  outdir,
  outExtension: { '.js': '.mjs' },
  bundle: true,
  packages: 'external',
  format: 'esm',
  platform: 'node',
  target: 'node20',
  logLevel: 'warning',
})
process.exitCode =
  spawnSync(process.execPath, [`${outdir}${name}.mjs`, ...args], { cwd: root, stdio: 'inherit' }).status ?? 1
