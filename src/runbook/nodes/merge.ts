import { NodeError } from '../errors.ts'
import { describe, has, isMap, itemsOf, newMap, type Value, type ValueMap } from '../hcl/values.ts'
import type { NodeExecutor } from '../registry.ts'

/** Puts maps together, later ones winning, or lists behind each other; null is passed over. Contract: runbook.md 6.2. */
export const mergeNode: NodeExecutor = {
  type: 'merge',
  effects: 'none',
  inputSchema: {
    type: 'object',
    properties: {
      sources: { type: 'array', description: 'Maps, or with concat lists' },
      strategy: { type: 'string', enum: ['merge', 'deep', 'concat'], default: 'merge', evaluation: 'constant' },
    },
    required: ['sources'],
  },
  execute: ({ config: { sources = null, strategy } }) => {
    const given = (itemsOf(sources) ?? []).filter((source) => source !== null)
    if (strategy !== 'concat') return Promise.resolve({ output: merged(given.map(asMap), strategy === 'deep') })
    const result = given.flatMap(asList)
    return Promise.resolve({ output: { result, count: result.length } })
  },
}

function merged(maps: readonly ValueMap[], deep: boolean): ValueMap {
  const result = newMap()
  for (const map of maps) {
    for (const [key, value] of Object.entries(map)) {
      const before = has(result, key) ? (result[key] ?? null) : null
      result[key] = deep && isMap(before) && isMap(value) ? merged([before, value], true) : value
    }
  }
  return result
}

function asMap(source: Value, index: number): ValueMap {
  if (isMap(source)) return source
  throw new NodeError('data_invalid', `source ${index} must be a map, not ${describe(source)}`)
}

function asList(source: Value, index: number): readonly Value[] {
  const items = itemsOf(source)
  if (items) return items
  throw new NodeError('data_invalid', `source ${index} must be a list, not ${describe(source)}`)
}
