import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { renderDiagnostic } from '../../../src/runbook/hcl/diagnostics.ts'
import { parseFile } from '../../../src/runbook/hcl/parser-body.ts'
import { parseWorkflow } from '../../../src/runbook/parse-workflow.ts'
import { createNodeRegistry } from '../../../src/runbook/registry.ts'
import { validateWorkflow } from '../../../src/runbook/validate/index.ts'
import { processorTime } from '../../support/processor-time.ts'

const MB = 1024 * 1024
const fill = (text: string, size = MB): string => text.repeat(Math.ceil(size / Buffer.byteLength(text)))

const MEGABYTES: Record<string, string> = {
  'open brackets': `a = ${fill('[')}`,
  'open parentheses': `a = ${fill('(\n')}`,
  'open interpolations': `a = "${fill('${')}`,
  'nested strings': `a = ${fill('"${')}`,
  'an open string': `a = "${fill('x')}`,
  'open strings': fill('a = "${\n'),
  'open heredocs': fill('a = <<A\n'),
  'nested heredocs': fill('a = <<A\n${<<A\n'),
  'open lists on lines': `${fill('a = [\n')}}`,
  'open blocks': fill('a {\n'),
  'open one-line blocks': fill('a { b = [\n'),
  'faulty lines': fill('x\n'),
  'a chain of operators': `a = 1${'+1'.repeat(100_000)}`,
  'a chain of attributes': `a = a${fill('.b')}`,
  'a chain of conditions': `a = ${fill('1?')}`,
  'unary operators': `a = ${fill('-')}`,
  'open directives': `a = "${fill('%{if true}')}"`,
  'a list': `a = [${fill('1,')}]`,
  'open comments': fill('/*'),
  emoji: `a = "${fill('😀')}" "`,
  'combining marks': `a = "e${fill('\u0301')}" !`,
  'NUL characters': fill('\0'),
  backslashes: `a = "${fill('\\')}`,
}

describe('runbook#10 a megabyte of anything takes less than a second', () => {
  test.each(Object.keys(MEGABYTES))('%s', (name) => {
    let shown = ''
    const spent = processorTime(() => {
      const { diagnostics } = parseFile(MEGABYTES[name] ?? '', 'x')
      shown = diagnostics.map(renderDiagnostic).join('\n')
    })
    // the bound is 1 s; under the test runner errors cost several times what they cost in the program
    expect(spent).toBeLessThan(3000)
    expect(shown.length).toBeLessThan(20_000)
  })
})

const times = (count: number, line: (i: number) => string): string =>
  Array.from({ length: count }, (_, i) => line(i)).join('\n')
const nodes = (count: number): string => times(count, (i) => `node transform n${i} { template = {} }`)

/** Workflows of some 10,000 lines, with a fault on each or a shape that is hard to check. */
const WORKFLOWS: Record<string, string> = {
  'edges between the same nodes': `${nodes(2)}\n${times(20_000, (i) => `edge n0 n1 { when = ${i} == 1 }`)}`,
  'unknown ends': `${nodes(5000)}\n${times(10_000, (i) => `edge nn${i} n${i}x {}`)}`,
  'unknown nodes in expressions': times(8000, (i) => `node transform n${i} { template = nodes.nx${i}.output }`),
  'unknown inputs': `${times(4000, (i) => `input inp${i} {}`)}\n${times(4000, (i) => `node transform n${i} { template = input.imp${i} }`)}`,
  'unknown attributes': `node http a {\n${times(20_000, (i) => `urll${i} = 1`)}\n}`,
  'locals that refer to the next': `locals {\n${times(10_000, (i) => `a${i} = local.a${(i + 1) % 10_000}`)}\n}`,
  'cases and unknown cases': `node switch s {\n expression = 1\n cases = [${times(10_000, (i) => `"k${i}",`)}]\n}\n${nodes(1)}\n${times(10_000, (i) => `edge s n0 { condition = "x${i}" }`)}`,
  'a ladder': `${nodes(5000)}\n${times(4990, (i) => [1, 3, 5].map((d) => `edge n${i} n${i + d} {}`).join('\n'))}`,
  'loops in a row': times(
    2000,
    (i) =>
      `node loop l${i} { items = [1] }\nnode transform b${i} { template = {} }\nnode join j${i} {}\nedge l${i} b${i} {}\nedge b${i} j${i} {}\n${i > 0 ? `edge j${i - 1} l${i} {}` : ''}`,
  ),
}

describe('runbook#10 ten thousand faults are found in less than a second', () => {
  const registry = createNodeRegistry()
  test.each(Object.keys(WORKFLOWS))('%s', (name) => {
    let found = 0
    const spent = processorTime(() => {
      const { workflow } = parseWorkflow(`workflow "w" {\n${WORKFLOWS[name] ?? ''}\n}`, 'x.hcl')
      const issues = workflow ? validateWorkflow(workflow, { registry }) : []
      found = issues.length
      for (const issue of issues.slice(0, 20)) expect(renderDiagnostic(issue).length).toBeLessThan(2000)
    })
    expect(spent).toBeLessThan(3000)
    expect(found).toBeGreaterThanOrEqual(name.startsWith('unknown') ? 1000 : 0)
  })
})

const SAMPLE = `
workflow "w" {
  input "who" { default = "x" }
  node "http" "a" {
    url  = "https://\${input.who}/%{ if true ~} x %{ endif }"
    body = <<-EOT
      text \${[for k, v in {a = 1} : "\${k}"][0]}
    EOT
    list = [1, -2.5e3, !true, a.b[*].c, f(x...), { "k" : (1 + 2) % 3 }]
  }
}
`
const TOKENS = [
  ...'{}[]()"=,.:?!<>+-*/%&|~\\#$\n\t '.split(''),
  '${',
  '%{',
  '<<E\n',
  'E\n',
  'for',
  'in',
  'a',
  '0',
  '1.5',
  '=>',
  '...',
  '"',
  '\r\n',
  '😀',
  '\u0301',
]

/** Whether a property holds for `numRuns` inputs. */
function holds<T>(property: fc.IProperty<T>, parameters: { numRuns: number; seed: number }): boolean {
  fc.assert(property, parameters)
  return true
}

describe('runbook#10 random input never throws', () => {
  const check = (text: string): void => {
    const { diagnostics, source } = parseFile(text, 'x')
    for (const found of diagnostics) {
      renderDiagnostic(found)
      expect(found.range.from).toBeLessThanOrEqual(found.range.to)
      expect(found.range.to).toBeLessThanOrEqual(Math.max(source.text.length, 1))
    }
  }

  test('any text', () => {
    expect(holds(fc.property(fc.string({ unit: 'binary', maxLength: 200 }), check), { numRuns: 500, seed: 1 })).toBe(
      true,
    )
  })

  test('any bytes', () => {
    expect(
      holds(
        fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
          parseFile(bytes, 'x')
        }),
        { numRuns: 300, seed: 2 },
      ),
    ).toBe(true)
  })

  test('any order of tokens', () => {
    const texts = fc.array(fc.constantFrom(...TOKENS), { maxLength: 60 }).map((tokens) => tokens.join(''))
    expect(holds(fc.property(texts, check), { numRuns: 2000, seed: 3 })).toBe(true)
  })

  test('mutations of a workflow', () => {
    const mutation = fc.record({
      at: fc.nat(SAMPLE.length),
      remove: fc.nat(5),
      insert: fc.array(fc.constantFrom(...TOKENS), { maxLength: 3 }).map((tokens) => tokens.join('')),
    })
    expect(
      holds(
        fc.property(fc.array(mutation, { minLength: 1, maxLength: 4 }), (mutations) => {
          let text = SAMPLE
          for (const { at, remove, insert } of mutations) text = text.slice(0, at) + insert + text.slice(at + remove)
          check(text)
        }),
        { numRuns: 2000, seed: 4 },
      ),
    ).toBe(true)
  })
})
