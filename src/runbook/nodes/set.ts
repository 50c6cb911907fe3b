import { isList, isMap, mapOf, toText, type Value } from '../hcl/values.ts'
import type { NodeExecutor } from '../registry.ts'
import type { Schema } from '../schema.ts'

const PAIR: Schema = { type: 'object', properties: { key: { type: 'string' }, value: {} }, required: ['key', 'value'] }

/** Sets variables: `name` with `value`, or `variables` as map or list of `{key, value}`. Contract: runbook.md 6.2. */
export const setNode: NodeExecutor = {
  type: 'set',
  effects: 'none',
  inputSchema: {
    type: 'object',
    properties: {
      name: { type: 'string', minLength: 1 },
      variable: { type: 'string', minLength: 1 },
      value: {},
      variables: { anyOf: [{ type: 'object' }, { type: 'array', items: PAIR }] },
    },
    oneOf: [{ required: ['name', 'value'] }, { required: ['variable', 'value'] }, { required: ['variables'] }],
  },
  execute: ({ config: { name, variable = null, value = null, variables } }) => {
    const output = variables === undefined ? [[toText(name ?? variable) ?? '', value] as const] : pairs(variables)
    return Promise.resolve({ output: mapOf(output) })
  },
}

const pairs = (variables: Value): (readonly [string, Value])[] => {
  if (isMap(variables)) return Object.entries(variables)
  const list = isList(variables) ? variables.filter(isMap) : []
  return list.map(({ key = null, value = null }) => [toText(key) ?? '', value] as const)
}
