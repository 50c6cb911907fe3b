import { expect, test } from 'vitest'
import { createNodeRegistry } from '../../src/runbook/registry.ts'
import { runWorkflow } from '../../src/runbook/run-workflow.ts'
import type { RunEvent } from '../../src/runbook/run/options.ts'
import { edges, parsed, run } from './support.ts'

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
