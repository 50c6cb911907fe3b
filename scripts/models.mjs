// Checks data/models.yaml, sorts its rows and stamps today's date on it: `npm run models`, when a release is made. Rows
// may be written as any YAML; they become a line of JSON each, which the server reads a hundred times as fast.
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { parse } from 'yaml'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const file = join(root, 'data', 'models.yaml')

const text = readFileSync(file, 'utf8')
const content = parse(text)
const { modelTableSchema } = await schema()
modelTableSchema.parse(content)
const nameOf = ({ provider, model }) => `${provider} ${model}`
const rows = content.models.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
const twice = rows.map(nameOf).filter((name, i, names) => name === names[i - 1])
if (twice.length > 0) throw new Error(`${file} has two rows of ${twice.join(', ')}`)

const comments = text.split('\n').filter((line) => line.startsWith('#'))
const version = new Date().toISOString().slice(0, 10)
const lines = rows.map((row) => `  - ${JSON.stringify(row)}`)
writeFileSync(file, [...comments, 'schema: 1', `version: ${version}`, 'models:', ...lines, ''].join('\n'))
console.log(`${file}: ${rows.length} rows`)

/** The schema as the server has it. */
async function schema() {
  const { outputFiles } = await build({
    entryPoints: [join(root, 'src/gateway/cost/model-table.ts')],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
  })
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`)
}
