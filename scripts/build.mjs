// Bundles src/ into dist/. Everything loaded at once starts in 173 ms bundled and 262 ms from node_modules; minifying
// made it slower (187 ms), so names stay readable in stack traces.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { buildQuick } from './build-quick.mjs'
import { sourceHash, STAMP } from './source-hash.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
process.chdir(root)

const entries = {
  cli: 'src/cli/main.ts',
  index: 'src/index.ts',
  client: 'src/client/index.ts',
  'checkpoint-thread': 'src/database/checkpoint-thread.ts',
  'search-worker': 'src/memory/search/worker.ts',
  'cell-source': 'src/memory/store/cell-source.ts',
}

/** Native code, and what a user adds when they want it, is found in node_modules at run time. */
const external = ['better-sqlite3', 'pg-native', '@huggingface/transformers', 'usearch', 'hcl2-parser']

mkdirSync('dist', { recursive: true })
const hash = sourceHash(root)
const quick = await buildQuick(external)
const { metafile } = await build({
  entryPoints: entries,
  outdir: 'dist',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  external,
  sourcemap: 'external',
  metafile: true,
  logLevel: 'warning',
  chunkNames: 'chunks/[name]-[hash]',
  // CommonJS packages ask for Node's own modules through `require`, which an ES module does not have.
  banner: {
    js: "import { createRequire as __createRequire } from 'node:module'\nconst require = __createRequire(import.meta.url)",
  },
})

// Files of an earlier build go last, so that a program started meanwhile still finds its parts.
const written = new Set([...Object.keys(metafile.outputs), ...quick])
for (const entry of readdirSync('dist', { recursive: true, withFileTypes: true })) {
  const file = relative('.', join(entry.parentPath, entry.name))
  if (entry.isFile() && !file.startsWith(join('dist', 'types')) && !written.has(file.replaceAll('\\', '/')))
    rmSync(file)
}

rmSync('dist/types', { recursive: true, force: true })
execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'], { stdio: 'inherit' })
writeFileSync(STAMP, hash)
