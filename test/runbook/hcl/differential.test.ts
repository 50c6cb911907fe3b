import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Body, Expression } from '../../../src/runbook/hcl/ast.ts'
import { evaluate } from '../../../src/runbook/hcl/evaluate.ts'
import { parseFile } from '../../../src/runbook/hcl/parser-body.ts'
import { constantScope } from '../../../src/runbook/hcl/scope.ts'
import { isConstant } from '../../../src/runbook/references.ts'
import { plain } from './support.ts'

interface Oracle {
  parse(text: string): unknown
}

/** The other parser, when it is installed. */
async function load(): Promise<Oracle | undefined> {
  const name = 'hcl2-parser'
  try {
    const module = (await import(name)) as {
      parseToObject?: (text: string) => unknown
      default?: { parseToObject: (text: string) => unknown }
    }
    const parseToObject = module.parseToObject ?? module.default?.parseToObject
    return parseToObject && { parse: parseToObject }
  } catch {
    return undefined
  }
}

const oracle = await load()
if (!oracle) console.warn('skipped: hcl2-parser is not installed')

const constant = (expression: Expression): unknown => plain(evaluate(expression, constantScope()))

/** Constant attributes and the number of blocks of each type. */
function summary(body: Body): unknown {
  const attributes = [...body.attributes.values()].filter(({ value }) => isConstant(value, false))
  return {
    attributes: Object.fromEntries(attributes.map(({ name, value }) => [name, constant(value)])),
    blocks: body.blocks.length,
  }
}

/** The same of the other parser's object, whose blocks are lists under their type. */
function oracleSummary(parsed: unknown): unknown {
  const root: unknown = Array.isArray(parsed) ? parsed[0] : parsed
  const attributes: Record<string, unknown> = {}
  let blocks = 0
  for (const [name, value] of Object.entries((root ?? {}) as Record<string, unknown>)) {
    if (name.startsWith('block')) blocks += Array.isArray(value) ? value.length : Object.keys(value as object).length
    else attributes[name] = value
  }
  return { attributes, blocks }
}

// null values, `a::b()`, integers above 2^53 and `$${` are known limits of the other parser and not generated
const scalar = fc.oneof(
  fc.integer({ min: 0, max: 1_000_000 }).map(String),
  fc.boolean().map(String),
  fc.stringMatching(/^[a-z 0-9é]{0,8}$/).map((text) => JSON.stringify(text)),
)
const value = fc.oneof(
  scalar,
  fc.array(scalar, { minLength: 1, maxLength: 4 }).map((items) => `[${items.join(', ')}]`),
  fc
    .uniqueArray(fc.stringMatching(/^[a-z]{1,4}$/), { minLength: 1, maxLength: 3 })
    .map((keys) => `{ ${keys.map((key) => `${key} = 1`).join(', ')} }`),
)
const attributes = fc.uniqueArray(fc.tuple(fc.stringMatching(/^x[a-z]{1,5}$/), value), {
  selector: ([name]) => name,
  maxLength: 5,
})
const blocks = fc.nat(3).map((count) => Array.from({ length: count }, (_, i) => `block "b${i}" {\n  a = 1\n}`))
const file = fc
  .tuple(attributes, blocks)
  .map(([list, rest]) => [...list.map(([name, text]) => `${name} = ${text}`), ...rest, ''].join('\n'))

describe.skipIf(!oracle)('runbook#2 hcl2-parser agrees', () => {
  test('on generated files', () => {
    const agree = (text: string): void => {
      const { body, diagnostics } = parseFile(text, 'x.hcl')
      expect(diagnostics).toEqual([])
      expect(summary(body)).toEqual(oracleSummary(oracle?.parse(text)))
    }
    fc.assert(fc.property(file, agree), { numRuns: 200, seed: 6 })
  })
})
