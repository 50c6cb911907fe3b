import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { packageRoot } from '../../src/base/package-root.ts'
import { runCli } from '../cli/run-cli.ts'

const examples = join(packageRoot, 'docs/examples')
const files = readdirSync(examples).filter((name) => name.endsWith('.hcl'))
const guide = readFileSync(join(packageRoot, 'docs/write-a-runbook.md'), 'utf8')
const blocks = [...guide.matchAll(/^```hcl\n(workflow "(\w+)" .*?)^```$/gms)].map(([, text = '', name = '']) => ({
  name,
  text,
}))

const directory = mkdtempSync(join(tmpdir(), 'mem-examples-'))
let server: Server
let url: string
beforeAll(async () => {
  server = createServer((_, response) => response.setHeader('Content-Type', 'application/json').end('{"well": true}'))
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/`
})
afterAll(() => {
  server.close()
  rmSync(directory, { recursive: true })
})

const mem = (args: string[]) => runCli(args, { env: { HOME: directory } })

/** Validates strictly, then runs; gives the outputs by node. */
async function run(file: string): Promise<{ exitCode: number; outputs: Record<string, unknown> }> {
  const valid = await mem(['validate', '--strict', file])
  expect(valid).toMatchObject({ code: 0, stderr: '' })
  const text = readFileSync(file, 'utf8')
  const inputs = text.includes('input "url"') ? ['--input', `url=${url}`] : []
  const { stdout } = await mem(['run', file, '--output', 'json', '--no-journal', ...inputs])
  const report: { exitCode: number; nodes: { id: string; output?: unknown }[] } = JSON.parse(stdout)
  const outputs = Object.fromEntries(report.nodes.map(({ id, output }) => [id, output]))
  return { exitCode: report.exitCode, outputs }
}

const EXPECTED: Readonly<Record<string, [node: string, output: unknown]>> = {
  'invoices.hcl': ['summary', { total: 430.5, reminders: [{ to: 'alan@example.com' }, { to: 'ada@example.com' }] }],
  'health.hcl': ['answer', { statusCode: 200, body: { state: 'well', status: 200 } }],
  'release.hcl': ['clean_up', { rolled_out_to: [{ result: '1.4.0 to eu' }, { result: '1.4.0 to us' }] }],
}

test.each(files)('runbook#134 docs/examples/%s validates and runs', async (file) => {
  const { exitCode, outputs } = await run(join(examples, file))
  expect(exitCode).toBe(0)
  const [node = '', output] = EXPECTED[file] ?? []
  expect(outputs[node]).toMatchObject(output ?? {})
})

test.each(blocks)('the workflow "$name" of the guide validates and runs', async ({ name, text }) => {
  const file = join(directory, `${name}.hcl`)
  writeFileSync(file, text)
  expect(await run(file)).toMatchObject({ exitCode: 0 })
})
