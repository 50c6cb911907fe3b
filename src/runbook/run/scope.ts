import type { Attribute } from '../hcl/ast.ts'
import { FunctionError } from '../hcl/errors.ts'
import { evaluate } from '../hcl/evaluate.ts'
import { isNamespace, type Namespace, type Scope } from '../hcl/scope.ts'
import type { SourceRange } from '../hcl/source.ts'
import { textsIn } from '../hcl/functions/conversion.ts'
import { has, isList, isMap, mapOf, type Value } from '../hcl/values.ts'
import type { Graph } from '../graph.ts'
import type { Masking } from './masking.ts'

/** What is the same for all expressions of a run. */
export interface RunValues {
  readonly graph: Graph
  readonly run: { readonly id: string; readonly attempt: number; readonly startedAt: string }
  /** Start of the run in milliseconds; kept on resume. */
  readonly now: number
  readonly inputs: Readonly<Record<string, Value>>
  readonly variables: Readonly<Record<string, Value>>
  readonly trigger: Value
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly secrets: Readonly<Record<string, string>>
  readonly masking: Masking
  readonly strict: boolean
  readonly files: Required<Pick<Scope, 'readFile' | 'fileExists'>>
  warn(code: 'RB501', message: string, range: SourceRange): void
}

export const ROOTS = [
  'input',
  'var',
  'local',
  'trigger',
  'nodes',
  'prev',
  'loop',
  'item',
  'index',
  'run',
  'self',
  'env',
  'secret',
]

/** Names for locals and for everything around a node. */
export abstract class RunScope implements Scope {
  protected readonly values: RunValues
  protected readonly locals: ReadonlyMap<string, Value>

  constructor(values: RunValues, locals: ReadonlyMap<string, Value>) {
    this.values = values
    this.locals = locals
  }

  get now(): number {
    return this.values.now
  }

  readFile(path: string): Buffer {
    return this.values.files.readFile(path)
  }

  fileExists(path: string): boolean {
    return this.values.files.fileExists(path)
  }

  conceal(value: Value): void {
    for (const text of textsIn(value)) this.values.masking.add(text)
  }

  names(): string[] {
    return ROOTS.filter((root) => this.variable(root) !== undefined)
  }

  variable(name: string): Value | Namespace | undefined {
    const { values } = this
    switch (name) {
      case 'input':
        return namespace('input', values.inputs)
      case 'var':
        return namespace('variable', values.variables)
      case 'local':
        return mapNamespace('local', this.locals)
      case 'trigger':
        return values.trigger
      case 'run':
        return this.runRecord(false)
      case 'env':
        return refusing(
          'environment variable',
          values.environment,
          (key) => `environment variable ${key} is not allowed, give --env ${key}`,
        )
      case 'secret':
        return refusing('secret', values.secrets, (key) => `secret "${key}" is not given`)
      default:
        return undefined
    }
  }

  /** Contract: runbook.md 3.4. */
  path([first = '', ...rest]: readonly string[], range: SourceRange): Value | undefined {
    const root = first === 'bindings' ? 'input' : first
    let value: Value | Namespace | undefined = this.root(root)
    for (const segment of rest) {
      value = value === undefined ? undefined : member(value, segment)
    }
    if (value === undefined) {
      const path = [first, ...rest].join('.')
      if (this.values.strict) throw new FunctionError(`missing path "${path}"`)
      this.values.warn('RB501', `missing path "${path}"`, range)
      return undefined
    }
    return isNamespace(value) ? value.value() : value
  }

  /** The roots of `{{ path }}` know some more members. */
  protected root(name: string): Value | Namespace | undefined {
    return name === 'run' ? this.runRecord(true) : this.variable(name)
  }

  protected runRecord(extended: boolean, currentNodeId: string | null = null): Value {
    const { id, attempt, startedAt } = this.values.run
    const { name, file } = this.values.graph.workflow
    const record = { id, attempt, workflow: name, file, started_at: startedAt }
    return mapOf(Object.entries(extended ? { ...record, startedAt, triggeredBy: 'cli', currentNodeId } : record))
  }
}

/** What `segment` of a path names in a value. */
export function member(value: Value | Namespace, segment: string): Value | Namespace | undefined {
  if (isNamespace(value)) return value.get(segment)
  if (isMap(value)) return has(value, segment) ? (value[segment] ?? null) : undefined
  return isList(value) && /^\d+$/.test(segment) ? value[Number(segment)] : undefined
}

const namespace = (name: string, values: Readonly<Record<string, Value>>): Namespace => ({
  member: name,
  get: (key) => (Object.hasOwn(values, key) ? values[key] : undefined),
  keys: () => Object.keys(values),
  value: () => mapOf(Object.entries(values)),
})

const mapNamespace = (name: string, values: ReadonlyMap<string, Value>): Namespace => ({
  member: name,
  get: (key) => values.get(key),
  keys: () => [...values.keys()],
  value: () => mapOf(values),
})

/** Names beside the given ones are refused; one given without a value is null. */
const refusing = (
  name: string,
  values: Readonly<Record<string, string | undefined>>,
  message: (key: string) => string,
): Namespace => ({
  member: name,
  get: (key) => {
    if (!Object.hasOwn(values, key)) throw new FunctionError(message(key))
    return values[key] ?? null
  },
  keys: () => Object.keys(values),
  value: () => mapOf(Object.entries(values).map(([key, value]) => [key, value ?? null])),
})

/** What a local sees; other locals are evaluated when first asked for. */
class LocalScope extends RunScope {
  private readonly expressions: ReadonlyMap<string, Attribute>
  private readonly done: Map<string, Value>
  private readonly open = new Set<string>()

  constructor(values: RunValues, expressions: ReadonlyMap<string, Attribute>, done: Map<string, Value>) {
    super(values, done)
    this.expressions = expressions
    this.done = done
  }

  override variable(name: string): Value | Namespace | undefined {
    if (name !== 'local') return super.variable(name)
    return {
      ...mapNamespace('local', this.done),
      get: (key) => this.local(key),
      keys: () => [...this.expressions.keys()],
    }
  }

  local(name: string): Value | undefined {
    const attribute = this.expressions.get(name)
    if (!attribute || this.done.has(name)) return this.done.get(name)
    if (this.open.has(name)) throw new FunctionError(`local "${name}" refers to itself`)
    this.open.add(name)
    const value = evaluate(attribute.value, this)
    this.done.set(name, value)
    return value
  }
}

/** All locals, evaluated once. @throws EvaluationError */
export function evaluateLocals(values: RunValues): ReadonlyMap<string, Value> {
  const done = new Map<string, Value>()
  const { locals } = values.graph.workflow
  const scope = new LocalScope(values, locals, done)
  for (const name of locals.keys()) scope.local(name)
  return done
}
