import type { Collection } from '../../client/types.ts'
import { defineCommand, PAGE_FLAGS } from '../command.ts'
import { connectWorkspace } from '../connect.ts'
import type { Row } from '../output.ts'

const row = ({ id, name }: Collection): Row => [id, name]

export const list = defineCommand({
  flags: PAGE_FLAGS,
  examples: ['collections list'],
  async run(context, page) {
    const { client, workspace } = connectWorkspace(context)
    const answer = await client.listCollections(workspace, page)
    await context.output.list(answer, answer.collections, row)
  },
})

export const create = defineCommand({
  args: { name: { help: 'Name, unique in its workspace' } },
  examples: ['collections create meetings'],
  async run(context, { name }) {
    const { client, workspace } = connectWorkspace(context)
    const collection = await client.createCollection(workspace, { name })
    await context.output.answer(collection, () => [row(collection)])
  },
})

export const remove = defineCommand({
  args: { id: { help: 'Collection id (coll_…)' } },
  examples: ['collections delete coll_01JZ8QK3V5M9T2X7R4N6P0B1CD'],
  async run(context, { id }) {
    const { client, workspace } = connectWorkspace(context)
    await client.deleteCollection(workspace, id)
    context.output.done(id, 'deleted')
  },
})
