import { createRequire } from 'node:module'
import { errorText } from '../base/errors.ts'
import { constantText, type Body, type Expression } from './hcl/ast.ts'
import { fileDiagnostic, type Diagnostic } from './hcl/diagnostics.ts'
import { EvaluationError } from './hcl/errors.ts'
import { evaluate } from './hcl/evaluate.ts'
import { fromJson } from './hcl/json.ts'
import { parseFile } from './hcl/parser-body.ts'
import { constantScope } from './hcl/scope.ts'
import type { Source } from './hcl/source.ts'
import { equals, type Value } from './hcl/values.ts'

/** What another HCL parser says about a text; null when it refuses it. */
export interface SecondOpinion {
  readonly name: string
  /** Blocks are lists under their type and labels. */
  parse(text: string): unknown
}

/**
 * Loaded only here: it takes 300 ms. By `require`, because the compiled bundle of the frequent verbs can't import packages.
 * It gives the value, and what went wrong without saying what.
 */
function hcl2Parser(): SecondOpinion {
  const require = createRequire(import.meta.url)
  const parser: { parseToObject(text: string): readonly [unknown, unknown] } = require('hcl2-parser')
  return { name: 'hcl2-parser', parse: (text) => parser.parseToObject(text)[0] }
}

/**
 * Compares the parser with another one: acceptance, numbers of blocks, constants. What differs is RB150.
 * Contract: runbook.md 2.1.
 */
export function crossCheck(source: Source, other?: SecondOpinion): Diagnostic[] {
  const opinion = other ?? hcl2Parser()
  const warning = (message: string): Diagnostic => ({
    ...fileDiagnostic('RB150', `${opinion.name} ${message}`, source),
    level: 'warning',
  })
  const { body, diagnostics } = parseFile(source.text, source.file)
  let theirs: unknown
  try {
    theirs = opinion.parse(source.text)
  } catch (error) {
    return [warning(`breaks down on the file: ${errorText(error)}`)]
  }
  const isRefused = diagnostics.length > 0
  if (theirs === null || isRefused)
    return isRefused === (theirs === null) ? [] : [warning(theirs === null ? 'refuses the file' : 'accepts the file')]
  return [...differences(body, fromJson(theirs), '')].map((message) => warning(`differs: ${message}`))
}

/** Compares a body with the other's object, in which a block `a "b" {}` is `{a: {b: [{}]}}`. */
function* differences(body: Body, other: Value, path: string): Generator<string> {
  for (const { name, value } of body.attributes.values()) {
    if (!isWritten(value)) continue
    const [ours, theirs] = [constantOf(value), at(other, [name])]
    if (ours !== undefined && (theirs === undefined || !equals(ours, theirs))) yield `value of ${path}${name}`
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

/** Whether the value stands in the file: the other one leaves operators, calls and templates as text. */
function isWritten(expression: Expression): boolean {
  switch (expression.kind) {
    case 'literal':
      return true
    case 'template':
      return expression.parts.every(({ kind }) => kind === 'text')
    case 'tuple':
      return expression.items.every(isWritten)
    case 'object':
      return expression.entries.every(({ key, value }) => constantText(key) !== undefined && isWritten(value))
    default:
      return false
  }
}

const memberOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? new Map(Object.entries(value)).get(name) : undefined

function at(value: Value, names: readonly string[]): Value | undefined {
  let found: unknown = value
  for (const name of names) found = memberOf(found, name)
  return found === undefined ? undefined : fromJson(found)
}

function constantOf(expression: Expression): Value | undefined {
  try {
    return evaluate(expression, constantScope())
  } catch (error) {
    if (error instanceof EvaluationError) return undefined
    throw error
  }
}
