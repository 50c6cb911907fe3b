import { expect, test } from 'vitest'
import { createNodeRegistry } from '../../src/runbook/registry.ts'
import { runWorkflow } from '../../src/runbook/run-workflow.ts'
import type { RunEvent } from '../../src/runbook/run/options.ts'
import { resumeFromReport, UnusableOutputError } from '../../src/runbook/resume.ts'
import { edges, output, parsed, Probe, run, stable } from './support.ts'

const slowFirst = `
  node probe a { ms = 30 }
  node probe b {}
  node loop l { 
    items = [20, 1]
    concurrency = 2
  }
  node probe x { ms = loop.item }
  ${edges('l x')}`

const settled = async (unordered: boolean): Promise<(string | undefined)[]> => {
  const events: RunEvent[] = []
  await run(slowFirst, { onEvent: (event) => events.push(event), unordered })
  expect(events[0]?.event).toBe('run.started')
  expect(events.at(-1)).toMatchObject({ event: 'run.finished', status: 'succeeded', exitCode: 0 })
  return events.filter(({ event }) => event === 'node.finished').map(({ node }) => node)
}

test('runbook#115 events are in plan order, with unordered in order of time', async () => {
  expect(await settled(false)).toEqual(['a', 'b', 'l', 'l[0]/x', 'l[1]/x'])
  expect((await settled(true))[0]).toBe('b')
})

test('runbook#131 a report alone is enough to go on, unless an output is masked', async () => {
  const text = (fail: string) =>
    `node probe a { value = 5 }\nnode probe b {\n value = prev\n ${fail}\n}\n${edges('a b')}`
  const failed = await run(text('fail = "conflict"'))
  const probe = new Probe()
  const report = await run(text(''), { resume: resumeFromReport(failed, 'report.json') }, probe)
  expect(probe.started).toEqual(['b'])
  expect(output(report, 'b')).toBe(5)
  const masked = await run('node probe a { value = secret.k }', { secrets: { k: 'secret' } })
  expect(() => resumeFromReport(masked, 'r')).toThrow(UnusableOutputError)
})

test('runbook#136 custom executors run, built-in names are refused, parallel runs do not mix', async () => {
  const executor = {
    type: 'set',
    effects: 'none' as const,
    inputSchema: {},
    execute: () => Promise.resolve({ output: null }),
  }
  expect(() => createNodeRegistry({ executors: [executor] })).toThrow('node type "set" is built in')
  expect(() => createNodeRegistry({ executors: [{ ...executor, type: 'slack' }] })).toThrow('built in')
  const reports = await Promise.all(
    Array.from({ length: 10 }, (_, i) => run('input i {}\nnode probe a { value = input.i }', { inputs: { i } })),
  )
  expect(reports.map((report) => output(report, 'a'))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  const again = await run('input i {}\nnode probe a { value = input.i }', { inputs: { i: 3 } })
  expect(stable(again)).toEqual(stable(reports[3] ?? again))
})

test('runbook#137 an invalid workflow rejects', async () => {
  const registry = createNodeRegistry()
  await expect(runWorkflow(parsed('node set a {}\nedge a b {}'), { registry })).rejects.toThrow('RB301')
})

test('an output above 64 MiB fails the node', async () => {
  const executor = {
    type: 'huge',
    effects: 'none' as const,
    inputSchema: {},
    execute: () => Promise.resolve({ output: 'x'.repeat(65 * 1024 * 1024) }),
  }
  const report = await runWorkflow(parsed('node huge a {}'), {
    registry: createNodeRegistry({ executors: [executor] }),
  })
  expect(report).toMatchObject({ status: 'failed', error: { code: 'limit_exceeded' } })
})
