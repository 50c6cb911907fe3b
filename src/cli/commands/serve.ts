import { createApp, type App } from '../../app.ts'
import { SERVICES, type ServiceName } from '../../app/services.ts'
import { loadConfig, type Config } from '../../config/load.ts'
import { letYoungGenerationGrow } from '../collector.ts'
import { defineCommand, type Io } from '../command.ts'
import { SERVE_FLAGS } from '../server-flags.ts'
import { DEFAULT_ENDPOINT } from '../settings.ts'

export const serve = defineCommand({
  flags: SERVE_FLAGS,
  notes:
    'Serves memory, platform, gateway, kernel and console until SIGINT or SIGTERM; running requests then get 15 s. ' +
    'Without a key it binds loopback only. ' +
    'With TLS, SIGHUP makes it read the certificate again.',
  examples: ['serve', 'serve --addr :7777 --data-dir /var/lib/mem', 'MEM_API_KEY=$(cat key) mem serve --addr :7777'],
  async run({ io, settings }, input) {
    // A key named before the verb is the client's flag of the same name.
    const flags = { ...input, 'api-key': input['api-key'] ?? settings.apiKey }
    const config = loadConfig({ flags, env: io.env })
    const { data_dir: dataDir } = config.storage
    const services = (input.services ?? SERVICES).filter((service) => service !== 'kernel' || input.kernel !== false)
    await serveUntilStopped(io, config, services, (url) =>
      input.services?.includes('memory') === false
        ? `mem is serving ${input.services.join(', ')} on ${url}, data in ${dataDir}\n`
        : welcome(url, dataDir, config.apiKey !== undefined),
    )
  },
})

/** Serves these services, all when none are named, and says so, until the program is told to stop. */
export async function serveUntilStopped(
  io: Io,
  config: Config,
  services: readonly ServiceName[] | undefined,
  greeting: (url: string) => string,
): Promise<void> {
  const app = await createApp(config, { ...(services && { services }), environment: io.env })
  const url = await listenOrClose(app)
  const stopped = stopSignal() // who reads the greeting may stop it at once
  letYoungGenerationGrow()
  io.stdout.write(greeting(url))
  if (config.server.tls.enabled) process.on('SIGHUP', () => void app.reloadCertificate())
  await stopped
  await app.close()
}

/** A server that cannot listen must not stay alive for its database connections. */
async function listenOrClose(app: App): Promise<string> {
  try {
    return await app.listen()
  } catch (error) {
    await app.close()
    throw error
  }
}

/** An address of this machine for a server that listens on all of them. */
export const reachable = (url: string): string => url.replace(/\/\/(\[::\]|0\.0\.0\.0)(?=:)/, '//127.0.0.1')

/** What leads the verbs to this server, where they would not look for it. */
export function pointTo(url: string): string {
  const endpoint = reachable(url)
  return endpoint === DEFAULT_ENDPOINT ? '' : `  export MEM_ENDPOINT=${endpoint}\n`
}

const welcome = (url: string, dataDir: string, keyed: boolean): string => `mem is serving ${url}, data in ${dataDir}

Try, in another terminal${keyed ? ' (with MEM_API_KEY set)' : ''}:
${pointTo(url)}  mem workspaces create --name notes
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
