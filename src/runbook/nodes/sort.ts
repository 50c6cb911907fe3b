import { compareValues, type Value } from '../hcl/values.ts'
import type { NodeExecutor } from '../registry.ts'
import { atPath, listItems } from './items.ts'
import { text } from './settings.ts'

/** Stable sort by a field or by a value per item; a list compares element by element. Contract: runbook.md 6.2. */
export const sortNode: NodeExecutor = {
  type: 'sort',
  effects: 'none',
  inputSchema: {
    type: 'object',
    properties: {
      items: { description: 'List, set or JSON text of one' },
      field: { type: 'string', minLength: 1, description: 'Dotted path into each item' },
      by: { evaluation: 'item', description: 'Evaluated per item; a list sorts by several keys' },
      order: { type: 'string', enum: ['asc', 'desc'], default: 'asc' },
    },
    required: ['items'],
    oneOf: [{ required: ['field'] }, { required: ['by'] }],
  },
  execute: ({ config, perItem: { by } }) => {
    const { items = null, order } = config
    const keyOf = by ?? ((item: Value) => atPath(item, text(config, 'field')))
    const direction = order === 'desc' ? -1 : 1
    const keyed = listItems(items).map((item, index) => ({ item, key: keyOf(item, index) }))
    const sorted = keyed.sort((a, b) => direction * compareValues(a.key, b.key)).map(({ item }) => item)
    return Promise.resolve({ output: { items: sorted, count: sorted.length } })
  },
}
