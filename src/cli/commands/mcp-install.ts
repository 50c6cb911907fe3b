import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { packageRoot } from '../../base/package-root.ts'
import { loadConfig } from '../../config/load.ts'
import { defineCommand, type Io } from '../command.ts'
import { CliError, EXIT, usageError } from '../exit.ts'
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
    const connection = url === undefined ? programOf(io, input) : { url, keyed: settings.apiKey !== undefined }
    const entry = client.entry(connection)
    if (!entry) throw usageError(`${client.title} cannot use --url`, 'Leave it out: then it starts the program itself.')
    const file = client.file(placeOf(io))
    const before = await readSettings(file)
    const servers = { ...asObject(before[client.section]), [NAME]: entry }
    const configuration = { [client.section]: { [NAME]: entry } }
    const isThere = isDeepStrictEqual(before[client.section], servers)
    const written = !isThere && !input.print && (input.yes === true || (await agrees(io, file, configuration)))
    if (written) await writeSettings(file, { ...before, [client.section]: servers })
    const remark = written
      ? `written to ${file}`
      : isThere
        ? `already in ${file}`
        : `for ${file} (--yes writes it there)`
    await output.text({ client: input.client, file, configuration, written }, textOf(configuration), remark)
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

/** Asks on a terminal only; anything but yes is no. */
async function agrees({ stdin, stderr }: Io, file: string, configuration: object): Promise<boolean> {
  if (!stderr.isTTY) return false
  stderr.write(`${textOf(configuration)}\nWrite this to ${file}? [y/N] `)
  for await (const chunk of stdin) return /^\s*y(es)?\s*$/i.test(Buffer.from(chunk).toString())
  return false
}

async function readSettings(file: string): Promise<Record<string, unknown>> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return {}
    throw error
  }
  try {
    return asObject(text.trim() === '' ? {} : JSON.parse(text))
  } catch {
    throw new CliError(EXIT.failure, `${file} is not plain JSON`, 'Put the entry that --print shows in by hand.')
  }
}

/** Whole or not at all: the client may be reading. */
async function writeSettings(file: string, settings: object): Promise<void> {
  await mkdir(dirname(file), { recursive: true })
  await writeFile(`${file}.new`, `${textOf(settings)}\n`)
  await rename(`${file}.new`, file)
}

const textOf = (value: object): string => JSON.stringify(value, null, 2)

const asObject = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : {}
