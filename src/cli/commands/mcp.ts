import { Readable } from 'node:stream'
import { serveTools } from '../../app/tools.ts'
import { loadConfig } from '../../config/load.ts'
import { letYoungGenerationGrow } from '../collector.ts'
import { defineCommand } from '../command.ts'
import { SERVE_FLAGS } from '../server-flags.ts'

const { config, 'data-dir': dataDir, 'embedding-model': model, 'api-key': key } = SERVE_FLAGS
const { 'metadata-driver': metadata, 'vector-driver': vector, 'ledger-driver': ledger } = SERVE_FLAGS

export const mcp = defineCommand({
  flags: {
    config,
    'data-dir': dataDir,
    'metadata-driver': metadata,
    'vector-driver': vector,
    'ledger-driver': ledger,
    'embedding-model': model,
    'api-key': key,
  },
  notes:
    'Serves the 25 tools to the program that starts it, over standard input and output, until the input ends. Works on ' +
    'the stores themselves: no server is needed, and one may run beside it. With a key, `initialize` must bring it.',
  examples: ['mcp', 'mcp --data-dir ~/.mem/data', 'mcp install cursor'],
  async run({ io, settings }, input) {
    // A key named before the verb is the client's flag of the same name.
    const flags = { ...input, 'api-key': input['api-key'] ?? settings.apiKey }
    const { stdin } = io
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.once(signal, () => void (stdin instanceof Readable && stdin.push(null)))
    }
    letYoungGenerationGrow()
    await serveTools(loadConfig({ flags, env: io.env }), stdin, (line) => io.stdout.write(line))
  },
})
