import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import * as z from 'zod'
import { packageRoot } from '../../src/base/package-root.ts'
import { reportData, reportText } from '../../src/runbook/report-file.ts'
import { edges, run } from './support.ts'

const schema = z.fromJSONSchema(JSON.parse(readFileSync(join(packageRoot, 'schemas/run-report.schema.json'), 'utf8')))
const faults = (report: unknown): unknown => schema.safeParse(reportData(report)).error?.issues ?? []

const LOOP = `
  node loop each { items = [1, 2] }
  node probe x {
    value = loop.item
    fail  = loop.item == 2 ? "not_found" : null
  }
  node join all {}
  ${edges('each x all')}`

test.each([
  ['a run that succeeds', 'input who { default = "x" }\nnode probe a { value = input.who }', {}],
  ['no executor', 'node tool_debug a {}\nnode probe b {}\nedge a b {}', {}],
  ['a loop that fails', LOOP, {}],
  ['a tolerated failure', 'node probe a {\n fail = "conflict"\n on_error = "continue"\n}', {}],
  ['a dry run', 'node remote a { value = 1 }\nnode probe b { value = nodes.a.output }\nedge a b {}', { dryRun: true }],
  ['a time limit', 'node delay a { duration = "1h" }', { timeoutMs: 1 }],
  [
    'a mock, trigger data, a response',
    'node manual m {}\nnode webhook_response r { body = 1 }\nedge m r {}',
    { triggerData: 1 },
  ],
  ['a missing path', 'node probe a { value = "{{trigger.nothing}}" }', {}],
  ['a local that fails', 'locals { l = tonumber(run.id) }\nnode probe a { value = local.l }', {}],
])('runbook#135 %s: the report fits its schema', async (_, body, options) => {
  expect(faults(await run(body, options))).toEqual([])
})

test('the schema refuses what it should', async () => {
  const report = await run('node probe a {}')
  expect(faults({ ...report, status: 'done' })).not.toEqual([])
  expect(faults({ ...report, more: 1 })).not.toEqual([])
})

test('numbers have 15 significant digits', () => {
  expect(reportText({ a: 0.1 + 0.2, b: 9_007_199_254_740_991 })).toBe('{\n  "a": 0.3,\n  "b": 9007199254740991\n}')
})
