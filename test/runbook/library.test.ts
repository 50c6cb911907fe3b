import { expect, test } from 'vitest'
import * as library from '../../src/index.ts'

const TEXT = 'workflow "w" {\n  node set a {\n    name  = "x"\n    value = 1\n  }\n}\n'

test('the package parses, validates, plans, draws and runs a workflow', async () => {
  const { workflow, diagnostics } = await library.parseWorkflow(TEXT, 'w.hcl')
  expect(diagnostics).toEqual([])
  if (!workflow) throw new Error('no workflow')
  const registry = await library.createNodeRegistry()
  expect(await library.validateWorkflow(workflow, { registry })).toEqual([])
  expect(await library.planWorkflow(workflow, { registry })).toMatchObject({
    nodes: [{ id: 'a', config: { value: 1 } }],
  })
  expect(await library.renderGraph(workflow, { format: 'text' })).toBe('workflow w\na (set)\n')
  expect(await library.runWorkflow(workflow, { registry })).toMatchObject({ status: 'succeeded', exitCode: 0 })
})

test('runbook#137 an invalid workflow rejects', async () => {
  const { workflow } = await library.parseWorkflow(TEXT.replace('set', 'sett'))
  if (!workflow) throw new Error('no workflow')
  const registry = await library.createNodeRegistry()
  await expect(library.runWorkflow(workflow, { registry })).rejects.toThrow('RB212')
})
