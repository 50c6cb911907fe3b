import { createRequire } from 'node:module'
import type * as Ajv from 'ajv/dist/2020.js'

/** JSON Schemas of skills. A schema is compiled once. */

/** Loaded when the first schema comes: a server may have none. */
const library = (): typeof Ajv => createRequire(import.meta.url)('ajv/dist/2020.js')
let ajv: Ajv.Ajv2020 | undefined
const compiled = new WeakMap<object, Ajv.ValidateFunction>()
const MAX_TOLD = 5

/** @throws Error saying what is wrong with the schema */
export function compileSchema(schema: Record<string, unknown>): Ajv.ValidateFunction {
  const known = compiled.get(schema)
  if (known) return known
  const { $schema: _dialect, $id: _name, ...rest } = schema
  ajv ??= new (library().Ajv2020)({ strict: false, allErrors: true, validateFormats: false, logger: false })
  const validate = ajv.compile(rest)
  compiled.set(schema, validate)
  return validate
}

/** Why a value does not fit, each place with its reason; undefined when it does. */
export function schemaMismatch(schema: Record<string, unknown>, value: unknown): string | undefined {
  const validate = compileSchema(schema)
  if (validate(value)) return undefined
  return (validate.errors ?? [])
    .slice(0, MAX_TOLD)
    .map(({ instancePath, message = 'does not fit', params }) => {
      const { additionalProperty } = params
      const at = instancePath === '' ? 'arguments' : instancePath.slice(1).replaceAll('/', '.')
      return typeof additionalProperty === 'string' ? `${at} must not have ${additionalProperty}` : `${at} ${message}`
    })
    .join('; ')
}
