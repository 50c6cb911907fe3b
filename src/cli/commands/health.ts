import { isMap } from '../../base/json.ts'
import { defineCommand } from '../command.ts'
import { connect } from '../connect.ts'
import { CliError, EXIT } from '../exit.ts'
import { foreignAnswer } from '../output.ts'

export const health = defineCommand({
  examples: ['health', 'health --endpoint https://memory.example.org'],
  async run(context) {
    const answer = await connect(context).health()
    if (answer.status !== 'live') throw foreignAnswer(context.settings)
    await context.output.answer(answer, () => [[answer.status, `version ${answer.version}`]])
  },
})

export const ready = defineCommand({
  notes: 'Exit code 3 when a store is down.',
  examples: ['ready', 'until mem ready --quiet; do sleep 1; done'],
  async run(context) {
    const answer = await connect(context).ready()
    if (!isMap(answer.adapter)) throw foreignAnswer(context.settings)
    const stores = Object.entries(answer.adapter)
    await context.output.answer(answer, () => [[answer.status], ...stores])
    if (!answer.ok) throw new CliError(EXIT.server, 'the server is degraded', "The server's log says more.")
  },
})
