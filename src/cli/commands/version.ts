import { version as current } from '../../base/version.ts'
import { defineCommand } from '../command.ts'

export const version = defineCommand({
  notes: 'Of this program; `mem health` tells that of the server.',
  examples: ['version', 'version --output json'],
  async run(context) {
    await context.output.answer({ version: current }, () => [[current]])
  },
})
