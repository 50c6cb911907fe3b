import { MODES } from '../choices.ts'
import { defineCommand, PAGE_FLAGS } from '../command.ts'
import { connectWorkspace } from '../connect.ts'

export const create = defineCommand({
  flags: {
    query: { value: 'text', required: true, help: 'The query to keep' },
    mode: { value: 'mode', choices: MODES, help: 'How to search (hybrid)' },
    k: { value: 'n', integer: true, default: 10, help: 'Memories to find' },
    watermark: { value: 'wmk', help: 'A mark of your own to keep with it' },
    label: { value: 'text', help: 'Name of the pin' },
  },
  examples: ["pin create --query 'open questions' --label review"],
  async run(context, request) {
    const { client, workspace } = connectWorkspace(context)
    const pin = await client.createPin(workspace, request)
    await context.output.answer(pin, () => [[pin.pin_id, pin.watermark]])
  },
})

export const list = defineCommand({
  flags: PAGE_FLAGS,
  examples: ['pin list'],
  async run(context, page) {
    const { client, workspace } = connectWorkspace(context)
    const answer = await client.listPins(workspace, page)
    await context.output.list(answer, answer.pins, (pin) => [pin.pin_id, pin.label, pin.mode, `k=${pin.k}`, pin.query])
  },
})

export const remove = defineCommand({
  args: { id: { help: 'Pin id (pin_…)' } },
  examples: ['pin delete pin_01JZ8QK3V5M9T2X7R4N6P0B1CD'],
  async run(context, { id }) {
    const { client, workspace } = connectWorkspace(context)
    await client.deletePin(workspace, id)
    context.output.done(id, 'deleted')
  },
})
