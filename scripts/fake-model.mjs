// Starts a stand-in for a model provider: npm run fake:model -- --provider openai --port 9100 [--script file.json].
// What it received: GET /__control/received. Another script: POST /__control/script.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { build } from 'esbuild'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const { provider, port, script } = parseArgs({
  options: { provider: { type: 'string' }, port: { type: 'string' }, script: { type: 'string' } },
}).values

const directory = mkdtempSync(join(tmpdir(), 'mem-fake-model-'))
const outfile = join(directory, 'fake-model.mjs')
const entry = join(root, 'test/support/fake-model/index.ts')
await build({ entryPoints: [entry], outfile, bundle: true, format: 'esm', platform: 'node', target: 'node20' })
const { startFakeModel } = await import(pathToFileURL(outfile).href)
rmSync(directory, { recursive: true })

const fake = await startFakeModel({
  provider,
  ...(port !== undefined && { port: Number(port) }),
  ...(script !== undefined && { script: JSON.parse(readFileSync(script, 'utf8')) }),
}).catch((error) => {
  console.error(error.message)
  process.exit(2)
})
console.log(JSON.stringify({ url: fake.url, credential: fake.credential }, null, 2))
process.once('SIGINT', () => fake.close())
process.once('SIGTERM', () => fake.close())
