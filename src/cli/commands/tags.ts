import { defineCommand } from '../command.ts'
import { connectWorkspace } from '../connect.ts'

export const set = defineCommand({
  args: { mem: { help: 'Memory id (mem_…)' }, key: { help: 'Name of the tag' }, value: { help: 'Its value' } },
  examples: ['tags set mem_01JZ8QK3V5M9T2X7R4N6P0B1CD topic food'],
  async run(context, { mem, key, value }) {
    const { client, workspace } = connectWorkspace(context)
    await client.setTag(workspace, mem, key, value)
    context.output.done(mem, `${key}=${value}`)
  },
})

export const remove = defineCommand({
  args: { mem: { help: 'Memory id (mem_…)' }, key: { help: 'Name of the tag' } },
  examples: ['tags delete mem_01JZ8QK3V5M9T2X7R4N6P0B1CD topic'],
  async run(context, { mem, key }) {
    const { client, workspace } = connectWorkspace(context)
    await client.deleteTag(workspace, mem, key)
    context.output.done(mem, `${key} deleted`)
  },
})
