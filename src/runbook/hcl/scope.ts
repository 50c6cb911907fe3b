import type { SourceRange } from './source.ts'
import type { Value } from './values.ts'

/** A root whose members are worked out when asked for, such as `nodes`. */
export interface Namespace {
  /** Undefined for an unknown member. May throw `FunctionError` for a refused one. */
  get(key: string): Value | Namespace | undefined
  keys(): string[]
  /** The whole as a map. */
  value(): Value
  /** What a member is called in a message: "node", "input". */
  readonly member: string
}

/** What an expression sees. */
export interface Scope {
  variable(name: string): Value | Namespace | undefined
  /** For suggestions. */
  names(): Iterable<string>
  /** Resolves `{{ path }}`; absent where `{{` is plain text. Undefined means a missing path, already warned about. */
  path?(segments: readonly string[], range: SourceRange): Value | undefined
  /** Start of the run in milliseconds, for `timestamp()`. */
  now?: number
  /** Contents for `file(path)`. @throws FunctionError saying why not */
  readFile?(path: string): Buffer
  fileExists?(path: string): boolean
  /** `sensitive(v)` was evaluated. */
  conceal?(value: Value): void
}

export const isNamespace = (value: Value | Namespace): value is Namespace =>
  typeof value === 'object' && value !== null && 'get' in value && typeof value.get === 'function'

/** A scope of fixed values. */
export function constantScope(variables: Readonly<Record<string, Value>> = {}): Scope {
  return {
    variable: (name) => (Object.hasOwn(variables, name) ? variables[name] : undefined),
    names: () => Object.keys(variables),
  }
}
