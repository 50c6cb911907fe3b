import { DIRECTIONS, EDGE_TYPES } from '../choices.ts'
import { defineCommand } from '../command.ts'
import { connectWorkspace } from '../connect.ts'
import { tagList } from '../output.ts'

const TYPES = { value: 'a,b', list: true, choices: EDGE_TYPES, help: 'Only Edges of these types' } as const

export const neighbors = defineCommand({
  args: { mem: { help: 'Memory id (mem_…)' } },
  flags: {
    direction: { value: 'dir', choices: DIRECTIONS, default: 'both', help: 'Which Edges' },
    types: TYPES,
    k: { value: 'n', integer: true, default: 50, help: 'Edges at most, per direction' },
  },
  examples: [
    'neighbors mem_01JZ8QK3V5M9T2X7R4N6P0B1CD',
    'neighbors mem_01JZ8QK3V5M9T2X7R4N6P0B1CD --direction out --types references,mentions',
  ],
  async run(context, { mem, direction, types, k }) {
    const { client, workspace } = connectWorkspace(context)
    const answer = await client.neighbors(workspace, { memory_id: mem, direction, edge_types: types, k })
    const tags = new Map(answer.neighbors.map((header) => [header.memory_id, tagList(header.tags)]))
    await context.output.list(answer, answer.edges, (edge) => {
      const outward = edge.source_memory_id === mem
      const other = outward ? edge.target_memory_id : edge.source_memory_id
      return [other, outward ? 'out' : 'in', edge.edge_type, edge.edge_id, tags.get(other)]
    })
  },
})

export const traverse = defineCommand({
  args: { mem: { help: 'Memory to start from (mem_…)' } },
  flags: {
    depth: { value: 'n', integer: true, default: 1, help: 'How many Edges away' },
    direction: { value: 'dir', choices: DIRECTIONS, default: 'out', help: 'Which Edges' },
    types: TYPES,
  },
  examples: ['traverse mem_01JZ8QK3V5M9T2X7R4N6P0B1CD --depth 2 --direction both'],
  async run(context, { mem, depth, direction, types }) {
    const { client, workspace } = connectWorkspace(context)
    const answer = await client.traverse(workspace, { seed_memory_id: mem, depth, direction, edge_types: types })
    const { nodes_visited: nodes, truncated } = answer.stats
    await context.output.answer(answer, () =>
      answer.layers.flatMap((layer, i) =>
        layer.map((node) => [node.memory_id, `layer ${i + 1}`, node.via_edge_type, node.via_edge_id]),
      ),
    )
    if (truncated) context.output.note(`stopped early, after ${nodes} Memories`)
  },
})

export const stats = defineCommand({
  examples: ['graph stats'],
  async run(context) {
    const { client, workspace } = connectWorkspace(context)
    const answer = await client.graphStats(workspace)
    await context.output.answer(answer, () => [
      ['Memories', answer.node_count],
      ...Object.entries(answer.edge_count_by_type).map(([type, count]) => [type, count]),
    ])
  },
})
