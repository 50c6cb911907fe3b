import type { NodeExecutor } from '../registry.ts'
import { listItems } from './items.ts'

/** Keeps the items whose condition is true, in their order. Contract: runbook.md 6.2. */
export const filterNode: NodeExecutor = {
  type: 'filter',
  effects: 'none',
  conditions: ['condition'],
  inputSchema: {
    type: 'object',
    properties: {
      items: { description: 'List, set or JSON text of one' },
      condition: {
        type: 'boolean',
        evaluation: 'item',
        description: 'Evaluated per item: an expression over item and index, or a text condition',
      },
    },
    required: ['items', 'condition'],
  },
  execute: ({ config: { items = null }, perItem: { condition } }) => {
    const kept = listItems(items).filter((item, index) => condition?.(item, index) === true)
    return Promise.resolve({ output: { items: kept, count: kept.length } })
  },
}
