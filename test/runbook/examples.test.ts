import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { packageRoot } from '../../src/base/package-root.ts'
import { parseWorkflow } from '../../src/runbook/parse-workflow.ts'
import type { OrchestratorClient } from '../../src/runbook/ports.ts'
import { createNodeRegistry } from '../../src/runbook/registry.ts'
import { runWorkflow } from '../../src/runbook/run-workflow.ts'
import { runCli } from '../cli/run-cli.ts'
import { recorder, type Recorded } from './nodes/recorder.ts'
import { output } from './support.ts'

const examples = join(packageRoot, 'docs/examples')
const files = readdirSync(examples).filter((name) => name.endsWith('.hcl'))
const guide = readFileSync(join(packageRoot, 'docs/write-a-runbook.md'), 'utf8')
const blocks = [...guide.matchAll(/^```hcl\n(workflow "(\w+)" .*?)^```$/gms)].map(([, text = '', name = '']) => ({
  name,
  text,
}))

const directory = mkdtempSync(join(tmpdir(), 'mem-examples-'))
afterAll(() => rmSync(directory, { recursive: true }))

const mem = (args: string[], env: Record<string, string> = {}) => runCli(args, { env: { HOME: directory, ...env } })

const ORDERS = [
  { customer: 'Ada', total: 12.5, at: '2026-03-01T10:00:00Z' },
  { customer: 'Grace', total: 40, at: '2026-03-01T20:00:00Z' },
  { customer: 'Alan', total: 99, at: '2026-02-27T20:00:00Z' },
]
const EXPORTS = [
  { id: 'a b', created: '2025-01-01T00:00:00Z' },
  { id: 'kept', created: '2025-01-01T00:00:00Z', keep: true },
  { id: 'new', created: '2026-03-01T00:00:00Z' },
]

/** What a model says of a ticket. */
const judgement = ({ body }: Recorded): object => {
  const urgent = body.includes('log in')
  const content = JSON.stringify({
    urgency: urgent ? 'high' : 'low',
    team: urgent ? 'accounts' : 'product',
    why: 'it says so',
  })
  return { model: 'small', choices: [{ message: { content }, finish_reason: 'stop' }] }
}

/** The services of all examples, below one address. */
const services = () =>
  recorder((request) => {
    const [, service = '', rest = ''] = request.url.split(/[/?]/)
    if (service === 'sick' || rest === 'lyon') return { status: 503, body: 'no' }
    if (service === 'orders') return { body: ORDERS }
    if (service === 'exports' && request.method === 'GET') return { body: EXPORTS }
    if (service === 'model') return { body: judgement(request) }
    return { body: { well: true } }
  })

interface Given {
  readonly flags: (url: string) => string[]
  readonly exitCode?: number
  /** The last of these nodes, and its output. */
  readonly expected: [node: string, output: unknown]
  /** Requests that matter, as `METHOD path`. */
  readonly sent?: string[]
}

const hook = (url: string): string[] => ['--secret', 'hook=env:HOOK', '--input', `url=${url}`]
const EXAMPLES: Readonly<Record<string, readonly Given[]>> = {
  'invoices.hcl': [
    {
      flags: () => [],
      expected: ['summary', { total: 430.5, reminders: [{ to: 'alan@example.com' }, { to: 'ada@example.com' }] }],
    },
  ],
  'health.hcl': [
    {
      flags: (url) => ['--input', `url=${url}/well`],
      expected: ['answer', { statusCode: 200, body: { state: 'well', status: 200 } }],
    },
    { flags: (url) => ['--input', `url=${url}/sick`], expected: ['answer', { body: { state: 'sick', status: 503 } }] },
  ],
  'release.hcl': [
    {
      flags: () => [],
      expected: ['clean_up', { rolled_out_to: [{ result: '1.4.0 to eu' }, { result: '1.4.0 to us' }] }],
    },
  ],
  'watch.hcl': [
    { flags: (url) => hook(`${url}/well`), expected: ['ask', { statusCode: 200 }], sent: ['GET /well'] },
    {
      flags: (url) => hook(`${url}/sick`),
      exitCode: 4,
      expected: ['alert', { success: true }],
      sent: ['GET /sick', 'GET /sick', 'GET /sick', 'POST /hook'],
    },
  ],
  'nightly.hcl': [
    {
      flags: (url) => [...hook(`${url}/orders`), '--now', '2026-03-02T03:00:00Z'],
      expected: ['report', { text: 'Orders of 01 Mar 2026: 2, 52.50 EUR\n- Grace: 40.00 EUR\n- Ada: 12.50 EUR\n' }],
    },
  ],
  'triage.hcl': [
    {
      flags: (url) => ['--input', `model_url=${url}/model`, '--secret', 'key=env:HOOK'],
      expected: ['report', { failed: [], text: 'HIGH T-1 for accounts: it says so\nLOW T-2 for product: it says so' }],
    },
  ],
  'fan-out.hcl': [
    {
      flags: (url) => ['--input', `url=${url}/sites`],
      expected: ['summary', { done: 2, failed: { lyon: expect.stringContaining('503') } }],
    },
  ],
  'clean-up.hcl': [
    {
      flags: (url) => ['--input', `url=${url}/exports`, '--now', '2026-03-02T03:00:00Z'],
      expected: ['summary', { applied: false, old: ['a b'], removed: 0 }],
      sent: ['GET /exports'],
    },
    {
      flags: (url) => ['--input', `url=${url}/exports`, '--now', '2026-03-02T03:00:00Z', '--input', 'apply=true'],
      expected: ['summary', { applied: true, old: ['a b'], removed: 1 }],
      sent: ['GET /exports', 'DELETE /exports/a%20b'],
    },
  ],
}
const CASES = Object.entries(EXAMPLES).flatMap(([file, cases]) =>
  cases.map((given, i) => [file, i + 1, given] as const),
)

test.each(CASES)('runbook#134 docs/examples/%s validates and runs, case %i', async (file, _, given) => {
  const { url, requests } = await services()
  const path = join(examples, file)
  const env = { HOOK: `${url}/hook` }
  const flags = given.flags(url)
  expect(await mem(['validate', '--strict', path])).toMatchObject({ code: 0, stderr: '' })
  const { code, stdout } = await mem(['run', path, '--output', 'json', '--no-journal', ...flags], env)
  const report: { error?: object; nodes: { id: string; output?: unknown }[] } = JSON.parse(stdout)
  const { exitCode = 0, sent } = given
  expect([code, report.error !== undefined]).toEqual([exitCode, exitCode !== 0])
  const [id, expected] = given.expected
  expect(report.nodes.find((node) => node.id === id)?.output).toMatchObject(expected as object)
  const seen = requests.map((request) => `${request.method} ${request.url}`)
  expect(seen).toEqual(sent ?? seen)
  expect(stdout).not.toContain(`${url}/hook`)
})

test('runbook#134 docs/examples/restart.hcl restarts what is steady, and leaves alone what is not', async () => {
  const path = join(examples, 'restart.hcl')
  expect((await mem(['validate', path])).code).toBe(0)
  const { workflow } = parseWorkflow(readFileSync(path), path)
  if (!workflow) throw new Error('no workflow')
  const restarting = async (updatedReplicas: number) => {
    const calls: string[] = []
    const answer = (name: string, value: unknown) => () => {
      calls.push(name)
      return Promise.resolve(value as never)
    }
    const object = { spec: { replicas: 2 }, status: { updatedReplicas, readyReplicas: 2 } }
    const client = {
      get: answer('get', object),
      events: answer('events', [{ reason: 'ScalingReplicaSet' }]),
      restart: answer('restart', undefined),
    } as unknown as OrchestratorClient
    const registry = createNodeRegistry({ orchestrator: client })
    const report = await runWorkflow(workflow, { registry, inputs: { deployment: 'web' } })
    return { calls, done: output(report, 'done') ?? output(report, 'left_alone') }
  }
  const steady = await restarting(2)
  expect(steady.done).toEqual({ restarted: true, ready: 2, events: ['ScalingReplicaSet'] })
  expect(steady.calls.toSorted()).toEqual(['events', 'get', 'get', 'restart'])
  expect(await restarting(1)).toEqual({ calls: ['get'], done: { restarted: false, why: 'a rollout is running' } })
})

test('every example has a test and a line in the docs', () => {
  const page = readFileSync(join(packageRoot, 'docs/write-a-runbook.md'), 'utf8')
  expect([...Object.keys(EXAMPLES), 'restart.hcl'].toSorted()).toEqual(files.toSorted())
  expect(files.filter((file) => !page.includes(`examples/${file}`))).toEqual([])
})

test.each(blocks)('the workflow "$name" of the guide validates and runs', async ({ name, text }) => {
  const file = join(directory, `${name}.hcl`)
  writeFileSync(file, text)
  const { url } = await services()
  expect(await mem(['validate', '--strict', file])).toMatchObject({ code: 0, stderr: '' })
  const inputs = text.includes('input "url"') ? ['--input', `url=${url}`] : []
  expect(await mem(['run', file, '--no-journal', ...inputs])).toMatchObject({ code: 0 })
})
