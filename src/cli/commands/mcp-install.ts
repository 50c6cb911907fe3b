import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { packageRoot } from '../../base/package-root.ts'
import { loadConfig } from '../../config/load.ts'
import { canAsk, confirm } from '../ask.ts'
import { defineCommand, type Io } from '../command.ts'
import { usageError } from '../exit.ts'
import { openJsonFile, sectionOf } from '../json-file.ts'
import { MCP_CLIENTS, type Connection, type McpClient, type Place } from '../mcp-clients.ts'
import { CONFIG_FLAG, DATA_DIR_FLAG } from '../server-flags.ts'

/** The name that clients list the server under. */
const NAME = 'mem'

export const mcpInstall = defineCommand({
  args: {
    client: {
      help: 'Who is to use the tools',
      choices: ['claude', 'claude-desktop', 'cursor', 'vscode', 'windsurf', 'gemini'],
    },
  },
  flags: {
    ...CONFIG_FLAG,
    ...DATA_DIR_FLAG,
    url: { value: 'url', help: "Connect to a running server's /mcp instead of starting a program" },
    yes: { help: 'Write without asking' },
    print: { help: 'Only show the configuration' },
  },
  notes:
    "Shows the entry for the client's configuration file, and writes it there when you agree; all else in the file stays. " +
    'A key is never written: the entry names the variable MEM_API_KEY.',
  examples: [
    'mcp install claude',
    'mcp install cursor --data-dir ~/.mem/data --yes',
    'mcp install vscode --url http://127.0.0.1:7777/mcp --print',
  ],
  async run({ io, settings, output }, input) {
    const client: McpClient = MCP_CLIENTS[input.client]
    const { url } = input
    if (url !== undefined && !/^https?:\/\/[^/]/.test(url)) {
      throw usageError(`--url must be a URL such as http://127.0.0.1:7777/mcp, not '${url}'`)
    }
    const connection = url === undefined ? programOf(io, input) : { url, keyed: settings.apiKey !== undefined }
    const entry = client.entry(connection)
    if (!entry) throw usageError(`${client.title} cannot use --url`, 'Leave it out: then it starts the program itself.')
    const file = client.file(placeOf(io))
    const configuration = { [client.section]: { [NAME]: entry } }
    const show = (written: boolean, remark: string, text = textOf(configuration)): Promise<void> =>
      output.text({ client: input.client, file, configuration, written }, text, remark)
    if (input.print) return show(false, `for ${file}`)
    const settingsFile = await openJsonFile(file)
    const before = sectionOf(file, settingsFile.contents, client.section)
    if (isDeepStrictEqual(before[NAME], entry)) return show(false, `already in ${file}`)
    const asks = !input.yes && canAsk(io)
    if (asks) io.stderr.write(`${textOf(configuration)}\n`)
    const verb = NAME in before ? 'Replace the entry in' : 'Write this to'
    if (!input.yes && !(await confirm(io, `${verb} ${file}?`))) {
      return show(false, asks ? 'nothing was written' : `for ${file} (--yes writes it there)`, asks ? '' : undefined)
    }
    await settingsFile.write({ ...settingsFile.contents, [client.section]: { ...before, [NAME]: entry } })
    await show(true, `written to ${file}; restart ${client.title.split(',')[0]}`, asks ? '' : undefined)
  },
})

/** Programs start it from anywhere, and graphical ones without a PATH: every path is whole. */
function programOf(io: Io, flags: { config: string | undefined; 'data-dir': string | undefined }): Connection {
  const { apiKey, file, storage } = loadConfig({ flags, env: io.env })
  if (apiKey !== undefined) {
    throw usageError(
      'this configuration has a key, which clients cannot send to a program they start',
      'Set server.mcp_enable, start `mem serve`, and pass --url http://127.0.0.1:7777/mcp.',
    )
  }
  const configured = file === undefined ? [] : ['--config', resolve(file)]
  const args = [join(packageRoot, 'bin/mem.js'), 'mcp', ...configured, '--data-dir', resolve(storage.data_dir)]
  return { command: process.execPath, args }
}

function placeOf({ env }: Io): Place {
  const home = env['HOME'] ?? homedir()
  return { cwd: process.cwd(), home, applications: applicationsOf(env, home) }
}

function applicationsOf(env: Io['env'], home: string): string {
  if (process.platform === 'darwin') return join(home, 'Library/Application Support')
  if (process.platform === 'win32') return env['APPDATA'] ?? join(home, 'AppData/Roaming')
  return env['XDG_CONFIG_HOME'] ?? join(home, '.config')
}

const textOf = (value: object): string => JSON.stringify(value, null, 2)
