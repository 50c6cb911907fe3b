import { createApp, type App } from '../../app.ts'
import { loadConfig } from '../../config/load.ts'
import { defineCommand } from '../command.ts'
import { SERVE_FLAGS } from '../server-flags.ts'
import { letYoungGenerationGrow } from '../young-generation.ts'

export const serve = defineCommand({
  flags: SERVE_FLAGS,
  notes:
    'Serves the REST API until SIGINT or SIGTERM; running requests then get 15 s. Without a key it binds loopback only. ' +
    'With TLS, SIGHUP makes it read the certificate again.',
  examples: ['serve', 'serve --addr :7777 --data-dir /var/lib/mem', 'MEM_API_KEY=$(cat key) mem serve --addr :7777'],
  async run({ io, settings }, input) {
    // A key named before the verb is the client's flag of the same name.
    const flags = { ...input, 'api-key': input['api-key'] ?? settings.apiKey }
    const config = loadConfig({ flags, env: io.env })
    const app = await createApp(config, input.services && { services: input.services })
    const url = await listenOrClose(app)
    letYoungGenerationGrow()
    io.stdout.write(
      input.services?.includes('memory') === false
        ? `mem is serving ${input.services.join(', ')} on ${url}, data in ${config.storage.data_dir}\n`
        : welcome(url, config.storage.data_dir, config.apiKey !== undefined),
    )
    if (config.server.tls.enabled) process.on('SIGHUP', () => void app.reloadCertificate())
    await stopSignal()
    await app.close()
  },
})

/** A server that cannot listen must not stay alive for its database connections. */
async function listenOrClose(app: App): Promise<string> {
  try {
    return await app.listen()
  } catch (error) {
    await app.close()
    throw error
  }
}

const welcome = (url: string, dataDir: string, keyed: boolean): string => `mem is serving ${url}, data in ${dataDir}

Try, in another terminal${keyed ? ' (with MEM_API_KEY set)' : ''}:
  mem workspaces create --name notes
  export MEM_WORKSPACE=<the id it prints>
  mem imprint --text 'The keeper likes rye bread.'
  mem recall 'what does the keeper eat?'

Stop with Ctrl-C.
`

function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  })
}
