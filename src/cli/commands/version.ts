import { version as current } from '../../base/version.ts'
import { defineCommand } from '../command.ts'
import { CONFIG_FLAG } from '../server-flags.ts'

export const version = defineCommand({
  flags: CONFIG_FLAG, // taken as the other verbs of the server take it (memory.md 11.2); it changes nothing here
  notes: 'Of this program; `mem health` tells that of the server.',
  examples: ['version', 'version --output json'],
  async run(context) {
    await context.output.answer({ version: current }, () => [[current]])
  },
})
