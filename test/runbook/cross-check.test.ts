import { expect, test } from 'vitest'
import { crossCheck } from '../../src/runbook/cross-check.ts'
import { Source } from '../../src/runbook/hcl/source.ts'

const source = new Source('workflow "w" {\n  timeout = "1m"\n  node set a {}\n  node set b {}\n}\n', 'w.hcl')
const messages = (parse: () => unknown): string[] =>
  crossCheck(source, { name: 'other', parse }).map(({ code, level, message }) => `${code} ${level} ${message}`)

const same = { workflow: { w: [{ timeout: '1m', node: { set: { a: [{}], b: [{}] } } }] } }

test('the other parser agrees', () => {
  expect(messages(() => same)).toEqual([])
})

test('what differs is RB150', () => {
  const other = { workflow: { w: [{ timeout: '2m', node: { set: { a: [{}] } } }] } }
  expect(messages(() => other)).toEqual([
    'RB150 warning other differs: value of workflow w.timeout',
    'RB150 warning other differs: 1 blocks workflow w.node set b against 0',
  ])
  expect(messages(() => null)).toEqual(['RB150 warning other refuses the file'])
})

test('a file that only the other one takes, or neither', () => {
  const broken = new Source('workflow "w" {', 'w.hcl')
  const codes = (parsed: unknown) =>
    crossCheck(broken, { name: 'other', parse: () => parsed }).map(({ message }) => message)
  expect(codes({})).toEqual(['other accepts the file'])
  expect(codes(null)).toEqual([])
})
