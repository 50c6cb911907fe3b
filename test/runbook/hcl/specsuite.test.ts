import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Block, Body, Expression } from '../../../src/runbook/hcl/ast.ts'
import { evaluate } from '../../../src/runbook/hcl/evaluate.ts'
import { encodeJson } from '../../../src/runbook/hcl/json.ts'
import { parseFile } from '../../../src/runbook/hcl/parser-body.ts'
import { constantScope, type Scope } from '../../../src/runbook/hcl/scope.ts'
import type { SourceRange } from '../../../src/runbook/hcl/source.ts'
import { equals, isMap, mapOf, toText, typeName, type Value } from '../../../src/runbook/hcl/values.ts'

const SUITE = process.env.MEM_HCL_SPECSUITE ?? resolve('../shared/hcl-specsuite')
const tests = join(SUITE, 'tests')

const cases = existsSync(tests)
  ? readdirSync(tests, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.t'))
      .sort()
  : []
if (cases.length === 0) console.warn(`skipped: no HCL specification suite in ${SUITE} (set MEM_HCL_SPECSUITE)`)

const parse = (file: string): ReturnType<typeof parseFile> => parseFile(readFileSync(file), relative(SUITE, file))

/** Decodes a body by an hcldec specification, noting what it doesn't expect. */
class Decoder {
  readonly faults: SourceRange[] = []
  private readonly scope: Scope

  constructor(scope: Scope) {
    this.scope = scope
  }

  decode(spec: Block, body: Body): Value {
    switch (spec.type) {
      case 'literal':
        return this.constant(spec, 'value')
      case 'object':
        return this.object(spec, body)
      case 'attr': {
        const attribute = body.attributes.get(spec.labels[0]?.value ?? '')
        return attribute ? this.convert(attribute.value, spec.body.attributes.get('type')?.value) : null
      }
      case 'block': {
        const type = spec.body.attributes.has('block_type') ? this.constant(spec, 'block_type') : spec.labels[0]?.value
        const block = body.blocks.find((candidate) => candidate.type === type)
        return block ? this.decode(nested(spec), block.body) : null
      }
      case 'block_list':
        return body.blocks
          .filter((block) => block.type === this.blockType(spec))
          .map((block) => this.decode(nested(spec), block.body))
      case 'block_map': {
        const blocks = body.blocks.filter((block) => block.type === this.blockType(spec))
        return mapOf(blocks.map((block) => [block.labels[0]?.value ?? '', this.decode(nested(spec), block.body)]))
      }
      default:
        throw new Error(`specification ${spec.type}`)
    }
  }

  private blockType(spec: Block): Value | undefined {
    return spec.body.attributes.has('block_type') ? this.constant(spec, 'block_type') : spec.labels[0]?.value
  }

  private object(spec: Block, body: Body): Value {
    const entries: [string, Value][] = []
    const blocks = new Set<Value | undefined>()
    for (const part of spec.body.blocks) {
      if (part.type !== 'attr') blocks.add(this.blockType(part))
      entries.push([part.labels[0]?.value ?? '', this.decode(part, body)])
    }
    const known = new Set(entries.map(([name]) => name))
    for (const [name, { nameRange }] of body.attributes) if (!known.has(name)) this.faults.push(nameRange)
    for (const block of body.blocks) if (!blocks.has(block.type)) this.faults.push(block.typeRange)
    return mapOf(entries)
  }

  private constant(spec: Block, name: string): Value {
    const attribute = spec.body.attributes.get(name)
    return attribute ? evaluate(attribute.value, this.scope) : null
  }

  private convert(expression: Expression, type: Expression | undefined): Value {
    const value = evaluate(expression, this.scope)
    return type?.kind === 'variable' && type.name === 'string' && value !== null ? (toText(value) ?? null) : value
  }
}

function nested(spec: Block): Block {
  const [inner] = spec.body.blocks
  if (!inner) throw new Error(`${spec.type} without a specification`)
  return inner
}

/** Whether a value has a type such as `map(object({a = string}))`. */
function conforms(value: Value, type: Expression): boolean {
  if (value === null) return true
  if (type.kind === 'variable') return type.name === 'any' || typeName(value) === type.name
  if (type.kind !== 'call' || !isMap(value)) return false
  const [argument] = type.arguments
  if (type.name === 'map' && argument) return Object.values(value).every((item) => conforms(item, argument))
  if (argument?.kind !== 'object') return false
  return argument.entries.every(({ key, value: entry }) => {
    const name = evaluate(key, constantScope())
    return typeof name === 'string' && conforms(value[name] ?? null, entry)
  })
}

const position = (range: SourceRange) => ({ from: range.start, to: range.end })

function expectedFaults(expectation: Body): unknown[] {
  const list = expectation.blocks.find((block) => block.type === 'diagnostics')?.body.blocks ?? []
  return list.map((fault) => {
    const place = (name: string) => {
      const body = fault.body.blocks.find((block) => block.type === name)?.body
      return Object.fromEntries(
        [...(body?.attributes ?? [])].map(([key, { value }]) => [key, evaluate(value, constantScope())]),
      )
    }
    return { from: place('from'), to: place('to') }
  })
}

describe.skipIf(cases.length === 0)('runbook#1 public HCL specification suite', () => {
  test.each(cases)('%s', (file) => {
    const base = join(tests, file.slice(0, -2))
    const expectation = parse(`${base}.t`)
    const specification = parse(`${base}.hcldec`)
    expect([...expectation.diagnostics, ...specification.diagnostics]).toEqual([])

    const variables = specification.body.blocks.find((block) => block.type === 'variables')?.body.attributes ?? []
    const values = Object.fromEntries(
      [...variables].map(([name, { value }]) => [name, evaluate(value, constantScope())]),
    )
    const decoder = new Decoder(constantScope(values))
    const input = parse(`${base}.hcl`)
    const root = specification.body.blocks.find((block) => block.type !== 'variables')
    const result = root && input.diagnostics.length === 0 ? decoder.decode(root, input.body) : null
    const faults = [...input.diagnostics.map((found) => found.range), ...decoder.faults]
    expect(faults.map(position)).toEqual(expectedFaults(expectation.body))

    const wanted = expectation.body.attributes.get('result')
    const type = expectation.body.attributes.get('result_type')
    const value = wanted ? evaluate(wanted.value, constantScope()) : result
    expect(equals(result, value), `${encodeJson(result)} is not ${encodeJson(value)}`).toBe(true)
    expect(type === undefined || conforms(result, type.value)).toBe(true)
  })
})
