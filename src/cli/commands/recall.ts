import { MODES, EDGE_TYPES } from '../choices.ts'
import { defineCommand } from '../command.ts'
import { connectWorkspace } from '../connect.ts'
import { usageError } from '../exit.ts'
import { excerpt } from '../output.ts'

export const recall = defineCommand({
  args: { query: { help: 'What to look for, in plain words' } },
  flags: {
    mode: { value: 'mode', choices: MODES, help: 'How to search (hybrid)' },
    k: { value: 'n', integer: true, default: 5, help: 'Memories to find' },
    collection: { value: 'id', help: 'Only in this collection' },
    'neighbor-depth': { value: 'n', integer: true, help: 'Add what is linked to the hits, so many Edges away' },
    'edge-types': { value: 'a,b', list: true, choices: EDGE_TYPES, help: 'Follow only Edges of these types' },
  },
  examples: [
    "recall 'what does the keeper eat?'",
    'recall bread --mode keyword --k 20 --output jsonl',
    "recall 'release plan' --neighbor-depth 1 --edge-types references,derived_from",
  ],
  async run(context, { query, mode, k, collection, 'neighbor-depth': depth, 'edge-types': edgeTypes }) {
    if (edgeTypes && depth === undefined) throw usageError('--edge-types goes with --neighbor-depth')
    const { client, workspace } = connectWorkspace(context)
    const answer = await client.recall(workspace, {
      query,
      mode,
      k,
      filters: collection === undefined ? undefined : { collection_id: collection },
      graph_expansion: depth === undefined ? undefined : { depth, edge_types: edgeTypes },
    })
    await context.output.list(answer, answer.results, (hit) => [
      hit.memory_id,
      hit.score.toFixed(3),
      hit.graph_provenance && `via ${hit.graph_provenance.edge_type}`,
      excerpt(hit.text),
    ])
    for (const warning of answer.warnings ?? []) context.output.note(`warning: ${warning}`)
  },
})
