import { defineCommand, PAGE_FLAGS } from '../command.ts'
import { connectWorkspace } from '../connect.ts'
import { excerpt, tagList } from '../output.ts'

export const list = defineCommand({
  flags: {
    collection: { value: 'id', help: 'Only of this collection' },
    ...PAGE_FLAGS,
    limit: { ...PAGE_FLAGS.limit, default: 50 },
  },
  examples: ['list', 'list --collection coll_01JZ8QK3V5M9T2X7R4N6P0B1CD --limit 200 --output jsonl'],
  async run(context, { collection, limit, cursor }) {
    const { client, workspace } = connectWorkspace(context)
    const answer = await client.listMemories(workspace, { collection_id: collection, limit, cursor })
    await context.output.list(answer, answer.memories, (memory) => [
      memory.id,
      excerpt(memory.content ?? ''),
      tagList(memory.tags),
    ])
  },
})
