import { errorText } from '../base/errors.ts'
import type { Body } from './hcl/ast.ts'
import { fileDiagnostic, type Diagnostic } from './hcl/diagnostics.ts'
import { EvaluationError } from './hcl/errors.ts'
import { evaluate } from './hcl/evaluate.ts'
import { fromJson } from './hcl/json.ts'
import { parseFile } from './hcl/parser-body.ts'
import { constantScope } from './hcl/scope.ts'
import type { Source } from './hcl/source.ts'
import { equals, type Value } from './hcl/values.ts'
import { isConstant } from './references.ts'

/** What another HCL parser says about a text; null when it refuses it. */
export interface SecondOpinion {
  readonly name: string
  /** Blocks are lists under their type and labels. */
  parse(text: string): unknown
}

/** hcl2-parser is loaded only here: it takes 300 ms. Undefined when it is not installed. */
async function hcl2Parser(): Promise<SecondOpinion | undefined> {
  const name = 'hcl2-parser' // not a literal in import(), so that a bundle leaves it to the user
  try {
    const loaded: unknown = await import(name)
    const parse = memberOf(loaded, 'parseToObject') ?? memberOf(memberOf(loaded, 'default'), 'parseToObject')
    return typeof parse === 'function' ? { name, parse: (text): unknown => parse(text) } : undefined
  } catch {
    return undefined
  }
}

const memberOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? new Map(Object.entries(value)).get(name) : undefined

/**
 * Compares the parser with another one: acceptance, numbers of blocks, constants. What differs is RB150.
 * Contract: runbook.md 2.1.
 */
export async function crossCheck(source: Source, other?: SecondOpinion): Promise<Diagnostic[]> {
  const warning = (message: string): Diagnostic => ({ ...fileDiagnostic('RB150', message, source), level: 'warning' })
  const opinion = other ?? (await hcl2Parser())
  if (!opinion) return [warning('no cross-check: hcl2-parser is not installed (npm install hcl2-parser)')]
  const { body } = parseFile(source.text, source.file)
  let parsed: unknown
  try {
    parsed = opinion.parse(source.text)
  } catch (error) {
    return [warning(`${opinion.name} refuses the file: ${errorText(error).split('\n')[0] ?? ''}`)]
  }
  const root = fromJson(Array.isArray(parsed) ? parsed[0] : parsed)
  if (root === null) return [warning(`${opinion.name} refuses the file`)]
  return [...differences(body, root, '')].map((message) => warning(`${opinion.name} differs: ${message}`))
}

/** Compares a body with the other's object, in which a block `a "b" {}` is `{a: {b: [{}]}}`. */
function* differences(body: Body, other: Value, path: string): Generator<string> {
  for (const { name, value } of body.attributes.values()) {
    if (!isConstant(value, false)) continue
    const [ours, theirs] = [constantOf(value), at(other, [name])]
    if (ours !== undefined && theirs !== undefined && !equals(ours, theirs)) yield `value of ${path}${name}`
  }
  const groups = new Map<string, Body[]>()
  for (const { type, labels, body: inner } of body.blocks) {
    const key = JSON.stringify([type, ...labels.map((label) => label.value)])
    groups.set(key, [...(groups.get(key) ?? []), inner])
  }
  for (const [key, bodies] of groups) {
    const names: string[] = JSON.parse(key)
    const place = `${path}${names.join(' ')}`
    const theirs = at(other, names)
    const list = Array.isArray(theirs) ? theirs : theirs === undefined ? [] : [theirs]
    if (list.length !== bodies.length) yield `${bodies.length} blocks ${place} against ${list.length}`
    else for (const [i, inner] of bodies.entries()) yield* differences(inner, fromJson(list[i]), `${place}.`)
  }
}

function at(value: Value, names: readonly string[]): Value | undefined {
  let found: unknown = value
  for (const name of names) found = memberOf(found, name)
  return found === undefined ? undefined : fromJson(found)
}

function constantOf(expression: Parameters<typeof evaluate>[0]): Value | undefined {
  try {
    return evaluate(expression, constantScope())
  } catch (error) {
    if (error instanceof EvaluationError) return undefined
    throw error
  }
}
