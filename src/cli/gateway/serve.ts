import { withPlatform } from '../../app/platform.ts'
import { loadConfig, type Config } from '../../config/load.ts'
import { canAsk, confirm, input as line } from '../ask.ts'
import type { Io } from '../command.ts'
import { foundFirst } from '../commands/platform-store.ts'
import { pointTo, reachable, serveUntilStopped } from '../commands/serve.ts'

/** Serves platform and gateway alone. @param flags by the names that the configuration knows */
export async function serveGateway(io: Io, flags: Readonly<Record<string, unknown>>): Promise<void> {
  const config = loadConfig({ flags, env: io.env })
  await offerOrganization(io, config, initCommand(flags))
  await serveUntilStopped(io, config, ['platform', 'gateway'], (url) => welcome(url, config.storage.data_dir))
}

/** For the store of this server, wherever its flags say that it lies. */
const initCommand = (flags: Readonly<Record<string, unknown>>): string =>
  ['config', 'data-dir'].reduce(
    (command, name) => (typeof flags[name] === 'string' ? `${command} --${name} '${flags[name]}'` : command),
    'mem platform init --organization <name> --email <you@example.org>',
  )

/** Without an organization nobody can log in: a person is asked for it, a log says how to make it. */
async function offerOrganization(io: Io, config: Config, command: string): Promise<void> {
  const isEmpty = !(await withPlatform(config, { upgrade: config.platform.auto_migrate }, ({ organizations }) =>
    organizations.isInitialized(),
  ))
  if (!isEmpty) return
  if (!canAsk(io) || !(await confirm(io, 'There is no organization yet. Make the first one now?'))) {
    io.stderr.write(`there is no organization yet, calls are answered 503: ${command}\n`)
    return
  }
  const organization = await line(io, 'Name of the organization', '')
  const email = await line(io, 'Your e-mail address', '')
  await foundFirst(io, config, { organization, email }, undefined)
  io.stderr.write(`Secrets will be sealed with ${config.platform.key_file}: keep a copy of it apart from backups.\n`)
}

const welcome = (
  url: string,
  dataDir: string,
): string => `mem is serving the model gateway on ${url}, data in ${dataDir}

Try, in another terminal:
${pointTo(url)}  mem login --email <you@example.org>
  mem gateway credentials add
  mem gateway chat 'Why is the sky blue?' --model <model>

OpenAI clients take ${reachable(url)}/rest/v1/llm-gateway/v1 as base URL, Anthropic clients ${reachable(url)}/rest/v1/llm-gateway.
Stop with Ctrl-C.
`
