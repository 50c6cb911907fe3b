import type { Attribute, Block, Body } from './hcl/ast.ts'
import { didYouMean, type Diagnostic } from './hcl/diagnostics.ts'
import { parseDuration } from './hcl/duration.ts'
import { EvaluationError } from './hcl/errors.ts'
import { evaluate } from './hcl/evaluate.ts'
import { constantScope } from './hcl/scope.ts'
import type { Source, SourceRange } from './hcl/source.ts'
import { toBool, type Value } from './hcl/values.ts'
import { isConstant } from './references.ts'

/** What to write instead of the words of other tools. */
const HINTS: Readonly<Record<string, string>> = {
  depends_on: 'write an edge',
  for_each: 'use loop',
  headers: 'headers = { }',
  retry: 'retry { attempts = 3 }',
  retries: 'retry { attempts = 3 }',
  from: 'edge FROM TO { }',
  to: 'edge FROM TO { }',
  variable: 'input "NAME" { }, inside workflow',
  resource: 'node TYPE ID { }',
  step: 'node TYPE ID { }',
  task: 'node TYPE ID { }',
}

/** A hint for an attribute or block that is not known. */
export function nameHint(name: string, known: readonly string[], source?: Source): { hint?: string } {
  const hint = HINTS[name]
  return hint === undefined ? didYouMean(name, known, source) : { hint }
}

const DURATION_HINT = { hint: 'a number of seconds, or text such as "1m30s" with the units ms, s, m, h, d' }

/** Reads constants out of blocks, and notes what is wrong with them; whoever extends it knows which blocks there are. */
export abstract class BlockReader {
  readonly diagnostics: Diagnostic[]

  constructor(diagnostics: Diagnostic[]) {
    this.diagnostics = diagnostics
  }

  protected error(code: Diagnostic['code'], message: string, range: SourceRange, more: Partial<Diagnostic> = {}): void {
    this.diagnostics.push({ level: 'error', code, message, range, ...more })
  }

  /** The labels, when there are `count` of them. */
  protected labels(block: Block, count: number, form: string): Block['labels'] {
    if (block.labels.length === count) return block.labels
    const found = block.labels.length === 1 ? '1 label' : `${block.labels.length} labels`
    this.error('RB204', `expected ${form}, found ${found}`, block.headerRange)
    return []
  }

  protected unknown(body: Body, attributes: readonly string[], blocks: readonly string[], owner: string): void {
    const known = [...attributes, ...blocks]
    for (const { name, nameRange } of body.attributes.values()) {
      if (!attributes.includes(name))
        this.error('RB205', `unknown attribute "${name}" on ${owner}`, nameRange, nameHint(name, known))
    }
    for (const { type, typeRange } of body.blocks) {
      if (!blocks.includes(type))
        this.error('RB206', `unknown block "${type}" on ${owner}`, typeRange, nameHint(type, known))
    }
  }

  /** A constant's value; undefined with a diagnostic when it isn't one. */
  protected constant(attribute: Attribute | undefined): Value | undefined {
    if (!attribute) return undefined
    const { name, value } = attribute
    if (!isConstant(value, false)) {
      this.error('RB214', `"${name}" must be constant`, value.range)
      return undefined
    }
    try {
      return evaluate(value, constantScope())
    } catch (error) {
      if (!(error instanceof EvaluationError)) throw error
      this.error('RB410', error.message, error.range, error.hint === undefined ? {} : { hint: error.hint })
      return undefined
    }
  }

  protected typed<T>(
    attribute: Attribute | undefined,
    expected: string,
    read: (value: Value) => T | undefined,
  ): T | undefined {
    const value = this.constant(attribute)
    if (value === undefined || !attribute) return undefined
    const result = read(value)
    if (result === undefined) this.error('RB210', `"${attribute.name}" must be ${expected}`, attribute.value.range)
    return result
  }

  protected text(attribute: Attribute | undefined): string | undefined {
    return this.typed(attribute, 'text', (value) => (typeof value === 'string' ? value : undefined))
  }

  protected bool(attribute: Attribute | undefined): boolean | undefined {
    return this.typed(attribute, 'a bool', toBool)
  }

  protected oneOf<T extends string>(attribute: Attribute | undefined, allowed: readonly T[]): T | undefined {
    const text = this.text(attribute)
    const found = allowed.find((value) => value === text)
    if (text !== undefined && found === undefined && attribute) {
      const message = `"${attribute.name}" is one of ${allowed.join(', ')}`
      this.error('RB211', message, attribute.value.range, didYouMean(text, allowed))
    }
    return found
  }

  protected duration(attribute: Attribute | undefined): number | undefined {
    const value = this.constant(attribute)
    if (value === undefined || !attribute) return undefined
    const ms = typeof value === 'string' || typeof value === 'number' ? parseDuration(value) : undefined
    if (ms === undefined)
      this.error('RB216', `"${attribute.name}" is no duration`, attribute.value.range, DURATION_HINT)
    return ms
  }

  /** A duration above 0: what may take none could never be done. */
  protected timeLimit(attribute: Attribute | undefined): number | undefined {
    const ms = this.duration(attribute)
    if (ms === 0 && attribute) this.error('RB216', `"${attribute.name}" must be above 0`, attribute.value.range)
    return ms
  }

  /** Checks a unique name of the form of an identifier. */
  protected identifier(name: string, range: SourceRange, first: SourceRange | undefined): boolean {
    if (first)
      this.error('RB208', `"${name}" is defined twice`, range, {
        related: [{ message: 'first defined at', range: first }],
      })
    else if (!/^[\p{ID_Start}_][\p{ID_Continue}-]*$/u.test(name))
      this.error('RB215', `"${name}" is no identifier`, range)
    else return true
    return false
  }
}
