import { expect, test } from 'vitest'
import { validateRunbook } from '../../src/index.ts'
import type { Value } from '../../src/runbook/hcl/values.ts'
import { createNodeRegistry } from '../../src/runbook/registry.ts'
import { parsed } from './support.ts'

const TEXT = `
  input "must" { type = string }
  input "count" {
    type    = number
    default = 1
  }
  input "size" {
    default = "s"
    enum    = ["s", "m"]
  }
  node set a {
    name  = "x"
    value = 1
  }`

const found = (inputs?: Record<string, Value>): string[] =>
  validateRunbook(parsed(TEXT), { registry: createNodeRegistry(), ...(inputs && { inputs }) }).map(
    ({ level, code, range, message }) => `${level} ${code} ${range.start.line}:${range.start.column} ${message}`,
  )

test('a problem with an input stands where the input is declared, an unknown one at the workflow', () => {
  expect(found({ must: 'x' })).toEqual([])
  expect(found()).toEqual(['info RB602 3:9 missing input "must"'])
  expect(found({ count: 'many', size: 'xl', cont: 2 })).toEqual([
    'error RB603 1:1 unknown input "cont"',
    'error RB602 3:9 missing input "must"',
    expect.stringMatching(/^error RB604 4:9 input "count": /),
    'error RB604 8:9 input "size" is one of "s", "m"',
  ])
})
