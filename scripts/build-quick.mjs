// Bundles the verbs that must start at once as CommonJS files, together with what V8 made of them: without that code cache
// a small run takes 2.0 times as long as `node -e 0`, with it 1.4; a server takes 1.5 times as long as with it. ES modules
// have no such cache in Node 20.
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { builtinModules, createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'

const require = createRequire(import.meta.url)
const { bundleOf, compile } = require('../bin/quick.js')

const HELLO = `workflow "hello" {
  input "who" { default = "world" }
  node manual start {}
  node set greet {
    name  = "greeting"
    value = "Hello \${input.who}"
  }
  edge start greet {}
}
`

/** Leaves packages to files of their own, so that reading those that are not needed costs nothing; collects their names. */
const packagesApart = (names, external, isApart) => ({
  name: 'packages-apart',
  setup: ({ onResolve }) =>
    onResolve({ filter: /^[^./]/ }, ({ path, kind }) => {
      if (kind === 'entry-point' || path.startsWith('node:') || builtinModules.includes(path)) return undefined
      if (external.includes(path)) return { path, external: true }
      if (!isApart(path)) return undefined
      names.add(path)
      return { path: `./packages/${path}.cjs`, external: true }
    }),
})

/** A package as `require` gives it: the ES module in its place would hide its default export from importers. */
const required = {
  name: 'required',
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: /^required:/ }, ({ path }) => ({ path: path.slice('required:'.length), namespace: 'required' }))
    onLoad({ filter: /.*/, namespace: 'required' }, ({ path }) => ({
      contents: `module.exports = require(${JSON.stringify(path)})`,
      resolveDir: process.cwd(),
    }))
  },
}

/** What no start of a server needs. */
const LATER = [
  '@fastify/ajv-compiler',
  '@fastify/fast-json-stringify-compiler',
  '@fastify/websocket',
  '@peculiar/x509',
  'commander',
  'reflect-metadata',
  'undici',
]

/** Programs of src/cli, which packages they leave apart, and how they are run so that V8 compiles what they need. */
const programs = [
  { name: 'quick', isApart: () => true, exercise: runAndValidate },
  {
    name: 'quick-server',
    isApart: (path) => LATER.includes(path),
    exercise: serveOnce,
  },
]

/** @returns the files written */
export async function buildQuick(external) {
  const names = new Set()
  const common = {
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    logLevel: 'warning',
    define: { 'import.meta.url': '__moduleUrl' },
    banner: { js: "const __moduleUrl = require('node:url').pathToFileURL(__filename).href" },
  }
  const sources = await Promise.all(
    programs.map(async ({ name, isApart }) => {
      const { outputFiles } = await build({
        ...common,
        entryPoints: [`src/cli/${name}.ts`],
        write: false,
        plugins: [packagesApart(names, external, isApart)],
      })
      return outputFiles[0].text
    }),
  )
  const packages = Object.fromEntries([...names].map((name) => [name, `required:${name}`]))
  const outdir = 'dist/packages'
  await build({
    ...common,
    entryPoints: packages,
    outdir,
    outExtension: { '.js': '.cjs' },
    external,
    plugins: [required],
  })
  for (const [i, { name, exercise }] of programs.entries()) await writeBundle(name, sources[i], exercise)
  return [...programs.map(({ name }) => `dist/${name}.bundle`), ...[...names].map((name) => `${outdir}/${name}.cjs`)]
}

async function writeBundle(name, source, exercise) {
  const { script, exports } = compile(name, source)
  const directory = mkdtempSync(join(tmpdir(), 'mem-build-'))
  await exercise(directory, exports.runQuick)
  rmSync(directory, { recursive: true })
  const cache = script.createCachedData()
  const length = Buffer.alloc(4)
  length.writeUInt32LE(cache.length)
  const file = bundleOf(name)
  writeFileSync(`${file}.new`, Buffer.concat([length, cache, Buffer.from(source, 'latin1')]))
  renameSync(`${file}.new`, file)
}

const ioOf = (directory, write = () => true) => ({
  stdin: [],
  stdout: { write },
  stderr: { write: () => true },
  env: { HOME: directory },
})

async function runAndValidate(directory, run) {
  const file = join(directory, 'hello.hcl')
  writeFileSync(file, HELLO)
  for (const verb of ['run', 'validate']) {
    if ((await run([verb, file], ioOf(directory))) !== 0) throw new Error(`the bundle cannot ${verb} ${HELLO}`)
  }
}

async function serveOnce(directory, run) {
  const config = join(directory, 'mem.yaml')
  writeFileSync(config, 'telemetry: { log_level: error }')
  const flags = ['--config', config, '--data-dir', directory]
  for (const verb of ['serve', 'gateway']) {
    const greet = (text) => {
      const [url] = /http:\S+:\d+/.exec(text)
      void fetch(`${url}/healthz`).then(() => process.emit('SIGTERM'))
    }
    const code = await run([verb, '--addr', '127.0.0.1:0', ...flags], ioOf(directory, greet))
    if (code !== 0) throw new Error(`the bundle cannot ${verb}`)
  }
  if ((await run(['mcp', ...flags], ioOf(directory))) !== 0) throw new Error('the bundle cannot serve tools')
}
