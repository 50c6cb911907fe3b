import { parseDuration } from '../base/duration.ts'
import type { Flags, Io } from './command.ts'
import { usageError } from './exit.ts'

/** Where the verbs look for a server that nobody names. */
export const DEFAULT_ENDPOINT = 'http://127.0.0.1:7777'

export const FORMATS = ['text', 'json', 'jsonl', 'yaml'] as const
export type Format = (typeof FORMATS)[number]

/** The global flags of memory.md 11.1, after flags, environment and defaults. */
export interface Settings {
  endpoint: string
  /** On the command line: then no other variable says otherwise. */
  isEndpointGiven: boolean
  apiKey: string | undefined
  /** On the command line. */
  isApiKeyGiven: boolean
  agentId: string
  workspace: string | undefined
  output: Format
  /** For one request, in ms. */
  timeoutMs: number
  /** On the command line: it then bounds what else may take as long as it takes. */
  isTimeoutGiven: boolean
  /** On a terminal only, and not where NO_COLOR is set. */
  color: boolean
  quiet: boolean
  verbose: boolean
}

/** They may stand anywhere on the command line; a verb's own flag of the same name wins behind the verb. */
export const GLOBAL_FLAGS = {
  endpoint: { value: 'url', help: 'Where the server is (MEM_ENDPOINT, else http://127.0.0.1:7777)' },
  'api-key': { value: 'key', help: 'Key of the server (MEM_API_KEY)' },
  'agent-id': { value: 'agent', help: 'Agent to act as (MEM_AGENT_ID, else agent_opaque_local)' },
  workspace: { value: 'ws', short: 'w', help: 'Workspace to work in (MEM_WORKSPACE)' },
  output: { value: 'format', short: 'o', choices: FORMATS, help: 'How to print answers (MEM_OUTPUT, else text)' },
  timeout: { value: 'duration', help: 'Patience for one request: 30s, 5m or seconds (30s)' },
  'no-color': { help: 'No colours (NO_COLOR)' },
  quiet: { short: 'q', help: 'Only ids in text output, no hints' },
  verbose: { short: 'v', help: 'Show each request and its time on stderr' },
} as const satisfies Flags

/** `given` holds what stood on the command line, by flag name. */
export function resolveSettings(given: Readonly<Record<string, unknown>>, { env, stdout }: Io): Settings {
  /** An empty value is as good as none. */
  const value = (flag: keyof typeof GLOBAL_FLAGS, variable: string): string | undefined => {
    const found = given[flag] ?? env[variable]
    return typeof found === 'string' && found !== '' ? found : undefined
  }
  return {
    endpoint: value('endpoint', 'MEM_ENDPOINT') ?? DEFAULT_ENDPOINT,
    isEndpointGiven: Boolean(given['endpoint']),
    apiKey: value('api-key', 'MEM_API_KEY'),
    isApiKeyGiven: given['api-key'] !== undefined,
    agentId: value('agent-id', 'MEM_AGENT_ID') ?? 'agent_opaque_local',
    workspace: value('workspace', 'MEM_WORKSPACE'),
    output: format(value('output', 'MEM_OUTPUT') ?? 'text'),
    timeoutMs: typeof given['timeout'] === 'string' ? timeout(given['timeout']) : 30_000,
    isTimeoutGiven: given['timeout'] !== undefined,
    color: stdout.isTTY === true && given['no-color'] !== true && !env['NO_COLOR'],
    quiet: given['quiet'] === true,
    verbose: given['verbose'] === true,
  }
}

function format(name: string): Format {
  const found = FORMATS.find((known) => known === name)
  if (!found)
    throw usageError(`'${name}' is no output format`, `Use one of ${FORMATS.join(', ')} (--output or MEM_OUTPUT).`)
  return found
}

function timeout(text: string): number {
  const ms = parseDuration(text) ?? 0
  if (ms < 1) throw usageError(`--timeout '${text}' is no duration`, 'Write it as 30s, 5m or seconds.')
  return ms
}
