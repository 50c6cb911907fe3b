import { expect, test } from 'vitest'
import { crossCheck } from '../../src/runbook/cross-check.ts'
import { Source } from '../../src/runbook/hcl/source.ts'

const source = new Source('workflow "w" {\n  timeout = "1m"\n  node set a {}\n  node set b {}\n}\n', 'w.hcl')
const messages = async (parse: () => unknown): Promise<string[]> =>
  (await crossCheck(source, { name: 'other', parse })).map(({ code, level, message }) => `${code} ${level} ${message}`)

const same = { workflow: { w: [{ timeout: '1m', node: { set: { a: [{}], b: [{}] } } }] } }

test('the other parser agrees', async () => {
  expect(await messages(() => [same, null])).toEqual([])
})

test('what differs is RB150', async () => {
  const other = { workflow: { w: [{ timeout: '2m', node: { set: { a: [{}] } } }] } }
  expect(await messages(() => other)).toEqual([
    'RB150 warning other differs: value of workflow w.timeout',
    'RB150 warning other differs: 1 blocks workflow w.node set b against 0',
  ])
  const refusing = (): never => {
    throw new Error('no\nstack')
  }
  expect(await messages(refusing)).toEqual(['RB150 warning other refuses the file: no'])
})
