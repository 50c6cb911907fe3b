import { NodeError } from '../errors.ts'
import { parseJson } from '../hcl/json.ts'
import { isMap, itemsOf, mapOf, newMap, sortedKeys, type Value } from '../hcl/values.ts'
import type { NodeExecutor } from '../registry.ts'

/** The scheduler decides when a join runs and gives it the arrivals as `prev`. Contract: runbook.md 4.4. */
export const joinNode: NodeExecutor = {
  type: 'join',
  effects: 'none',
  inputSchema: {
    type: 'object',
    properties: {
      mode: { type: 'string', enum: ['all', 'first', 'stream'], default: 'all', evaluation: 'constant' },
      cancelOthers: { type: 'boolean', default: false, evaluation: 'constant' },
    },
  },
  execute: ({ prev }) => Promise.resolve({ output: prev }),
}

/** Emits the items as a list; the scheduler runs the body for each. Contract: runbook.md 4.5. */
export const loopNode: NodeExecutor = {
  type: 'loop',
  effects: 'none',
  inputSchema: {
    type: 'object',
    properties: {
      items: {},
      itemVar: { type: 'string', default: 'item', evaluation: 'constant', format: 'identifier' },
      indexVar: { type: 'string', default: 'index', evaluation: 'constant', format: 'identifier' },
      join: { type: 'string', evaluation: 'constant' },
      concurrency: { type: 'integer', default: 1, minimum: 1, maximum: 256 },
      maxIterations: { type: 'integer', default: 10_000, minimum: 1, maximum: 1_000_000 },
      onItemError: { type: 'string', enum: ['fail', 'continue'], default: 'fail' },
    },
    required: ['items'],
  },
  execute: ({ config: { items = null, maxIterations } }) => {
    const list = iterations(items)
    if (list.length > Number(maxIterations)) {
      throw new NodeError('loop_limit', `${list.length} items, at most ${Number(maxIterations)} are allowed`)
    }
    return Promise.resolve({ output: list })
  },
}

/** Lists and sets as they are, maps as `{key, value}` in key order, JSON text of one of them. */
function iterations(items: Value): readonly Value[] {
  const decoded = typeof items === 'string' ? fromText(items) : items
  const list = itemsOf(decoded)
  if (list) return list
  if (isMap(decoded)) {
    return sortedKeys(decoded).map((key) => mapOf(Object.entries({ key, value: decoded[key] ?? null })))
  }
  throw new NodeError('items_invalid', 'items must be a list, a map, a set or JSON text of one')
}

function fromText(text: string): Value {
  try {
    return parseJson(text)
  } catch {
    throw new NodeError('items_invalid', 'items is text, but no JSON')
  }
}

/** Passes its input on. Contract: runbook.md 4.6. */
export const splitNode: NodeExecutor = {
  type: 'split',
  effects: 'none',
  inputSchema: {
    type: 'object',
    properties: {
      failFast: { type: 'boolean' },
      executionMode: { type: 'string' },
      concurrency: { type: 'integer', minimum: 1, maximum: 256 },
    },
  },
  execute: ({ prev }) => Promise.resolve({ output: prev === null ? newMap() : isMap(prev) ? prev : { value: prev } }),
}
