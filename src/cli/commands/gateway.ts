import { defineCommand } from '../command.ts'
import { SERVE_FLAGS } from '../server-flags.ts'

const {
  services: _,
  kernel: _kernel,
  'kernel-context': _context,
  'kernel-scope': _scope,
  'standalone-operator': _operator,
  ...FLAGS
} = SERVE_FLAGS

/** Its verbs load it too, so that the server itself is loaded only when it runs. */
export const gateway = defineCommand({
  flags: FLAGS,
  notes:
    'Serves platform and gateway alone until SIGINT or SIGTERM; `mem serve` serves them beside the rest. On an empty store it ' +
    'offers to make the first organization.',
  examples: ['gateway', 'gateway --addr :7777 --data-dir /var/lib/mem'],
  async run({ io, settings }, input) {
    const { serveGateway } = await import('../gateway/serve.ts')
    // A key named before the verb is the client's flag of the same name.
    await serveGateway(io, { ...input, 'api-key': input['api-key'] ?? settings.apiKey })
  },
})
