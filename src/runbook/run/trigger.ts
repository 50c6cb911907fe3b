import { NodeError } from '../errors.ts'
import { fromJson } from '../hcl/json.ts'
import { SyntaxFault } from '../hcl/diagnostics.ts'
import { parseExpression } from '../hcl/parser-body.ts'
import { equals, has, isMap, itemsOf, mapOf, toBool, type Value, type ValueMap } from '../hcl/values.ts'
import { convert, parseType, TypeMismatch, type TypeConstraint } from '../type-constraint.ts'

/** `trigger`, and the payload that trigger nodes emit. Contract: runbook.md 4.7. */
export function triggerValues(data: unknown): { trigger: Value; payload: Value } {
  const value = fromJson(data ?? {})
  if (!isMap(value)) return { trigger: mapOf([['data', value]]), payload: value }
  if (has(value, 'data')) return { trigger: value, payload: value.data ?? null }
  return { trigger: mapOf([...Object.entries(value), ['data', value]]), payload: value }
}

/** The payload, checked against the trigger's `inputs`, defaults filled in. @throws NodeError payload_invalid */
export function checkPayload(payload: Value, inputs: Value | undefined): Value {
  if (inputs === undefined || inputs === null || !isMap(inputs)) return payload
  const fault = payloadTypeFault(inputs)
  if (fault !== undefined) throw new NodeError('config_invalid', fault)
  if (!isMap(payload)) throw new NodeError('payload_invalid', 'the trigger data must be a map')
  const entries = new Map(Object.entries(payload))
  for (const [name, declared] of Object.entries(inputs)) {
    const field = isMap(declared) ? declared : mapOf([['type', declared]])
    const value = field.default !== undefined && !has(payload, name) ? field.default : payload[name]
    if (value !== undefined) entries.set(name, checkField(name, value, field))
    else if (toBool(field.required ?? false))
      throw new NodeError('payload_invalid', `"${name}" is missing in the trigger data`)
  }
  return mapOf(entries)
}

/** Which declared type of a payload is none. */
export function payloadTypeFault(inputs: Value): string | undefined {
  for (const [name, declared] of Object.entries(isMap(inputs) ? inputs : {})) {
    const type = isMap(declared) ? (declared.type ?? 'any') : declared
    if (typeof type === 'string' && !typeNamed(type)) return `"${type}" of input "${name}" is no type`
  }
  return undefined
}

function typeNamed(text: string): TypeConstraint | undefined {
  try {
    const type = parseType(parseExpression(text))
    return 'invalid' in type ? undefined : type
  } catch (error) {
    if (error instanceof SyntaxFault) return undefined
    throw error
  }
}

function checkField(name: string, value: Value, { type, enum: allowed }: ValueMap): Value {
  const constraint = typeof type === 'string' ? typeNamed(type) : undefined
  try {
    const converted = convert(value, constraint ?? { kind: 'any' })
    const items = allowed === undefined ? undefined : itemsOf(allowed)
    if (!items || items.some((item) => equals(item, converted))) return converted
  } catch (error) {
    if (error instanceof TypeMismatch) throw new NodeError('payload_invalid', `"${name}": ${error.message}`)
    throw error
  }
  throw new NodeError('payload_invalid', `"${name}" is not among the allowed values`)
}
