import * as z from 'zod'
import { isMap, jsonOf } from '../../base/json.ts'
import { MemoryApiError } from '../../client/errors.ts'
import { ask, send, type Call, type Connection } from '../../client/transport.ts'
import type { Context } from '../command.ts'
import { checkEndpoint, traced } from '../connect.ts'
import { CliError, EXIT, exitOfStatus } from '../exit.ts'
import { foreignAnswer, type Row } from '../output.ts'
import { isOf, readSession } from './session-file.ts'

/** The flags of verbs that act with a session. Contract: git-host.md 2.8. */
export const SESSION_FLAG = {
  'session-token': { value: 'token', help: 'Session to act with (MEM_SESSION_TOKEN, else that of `mem login`)' },
} as const
export const PROJECT_FLAGS = {
  project: { value: 'id', integer: true, required: true, help: 'Project to work in' },
  ...SESSION_FLAG,
} as const
export const RANGE_FLAGS = {
  limit: { value: 'n', integer: true, help: 'Rows at most' },
  'after-id': { value: 'id', help: 'Go on where an earlier answer ended' },
} as const

export interface SessionInput {
  'session-token': string | undefined
}

/** A list as these routes answer it, under its plural. */
export type List<Name extends string, Item> = Record<Name, Item[]> & { next_after_id: string }

/**
 * Sends one call with the session of the flags.
 * @param mark a field of every such answer, by which it is known as ours; records have `id`, lists `next_after_id`
 * @throws CliError without a session, or with what the server says
 */
export async function callRest<Answer>(
  context: Context,
  input: SessionInput,
  call: Call,
  mark?: keyof Answer & string,
): Promise<Answer> {
  const answer = await explained(ask<Answer>(connection(context, tokenOf(context, input)), call))
  const marks = mark === undefined ? ['id', 'next_after_id'] : [mark]
  if (!isMap(answer) || !marks.some((name) => name in answer)) throw foreignAnswer(context.settings)
  return answer
}

/** As `callRest`, for calls that answer without a body. */
export async function sendRest(context: Context, input: SessionInput, call: Call): Promise<void> {
  const text = await explained(send(connection(context, tokenOf(context, input)), call))
  if (text !== '') throw foreignAnswer(context.settings)
}

/** As `callRest`, without a session. */
export const callOpenRest = <Answer>(context: Context, call: Call): Promise<Answer> =>
  explained(ask<Answer>(connection(context), call))

/** Shows a list, and how to go on. */
export async function showList<Item>(
  context: Context,
  answer: { next_after_id: string },
  items: readonly Item[],
  row: (item: Item) => Row,
): Promise<void> {
  const { output, settings } = context
  await output.list(answer, items, row)
  const isWhole = settings.output === 'json' || settings.output === 'yaml'
  if (!isWhole && answer.next_after_id !== '') output.note(`more: --after-id ${answer.next_after_id}`)
}

/** The query of a list. */
export const rangeQuery = (input: { limit: number | undefined; 'after-id': string | undefined }) => ({
  limit: input.limit,
  after_id: input['after-id'],
})

/** The saved token is for the server that made it, and no other sees it. */
export function tokenOf({ io, settings: { endpoint } }: Context, input: SessionInput): string {
  checkEndpoint(endpoint)
  const token = input['session-token'] ?? io.env['MEM_SESSION_TOKEN'] ?? ''
  if (token !== '') return token
  const saved = readSession(io)
  if (saved && isOf(saved, endpoint)) return saved.token
  const elsewhere = saved ? `; the session of \`mem login\` is for ${saved.endpoint}` : ''
  throw new CliError(EXIT.unauthorized, `not logged in at ${endpoint}${elsewhere}`, LOG_IN)
}

const connection = (context: Context, token?: string): Connection => ({
  endpoint: context.settings.endpoint,
  fetch: context.settings.verbose ? traced(context) : fetch,
  headers: { 'User-Agent': 'mem-cli', ...(token !== undefined && { Authorization: `Bearer ${token}` }) },
  timeoutMs: context.settings.timeoutMs,
})

const text = z.string().optional().catch(undefined)
const envelope = z.object({
  error: z.object({
    code: z.string(),
    message: z.string(),
    details: z.object({ resource: text, setting: text, reason: text, permission: text }).catch({}),
  }),
})
type Refusal = z.infer<typeof envelope>['error']

async function explained<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof MemoryApiError)) throw error
    const { data } = envelope.safeParse(jsonOf(error.rawBody))
    if (!data) throw new CliError(exitOfStatus(error.status), error.message, 'Does this server have the platform?')
    const { code, message } = data.error
    throw new CliError(exitOfStatus(error.status), `${message} (${code})`, hintOf(data.error))
  }
}

function hintOf({ code, details: { resource, setting, reason, permission } }: Refusal): string | undefined {
  if (resource === 'path') return 'Check --endpoint (MEM_ENDPOINT): it has no path of its own.'
  if (reason === 'in_use') return 'Take it out of them first, or: mem gateway credentials remove <name> --force'
  if (setting === 'gateway.runtime_roles') {
    return "Whoever runs the server can name the organization there, in the server's mem.yaml; or give a key instead."
  }
  if (setting !== undefined) return `An admin can turn it on: mem gateway settings --${setting.replaceAll('_', '-')}`
  // It is not what the caller may do, but that the token is a key.
  if (code === 'forbidden' && permission === undefined) return LOG_IN
  return HINTS[code]
}

const LOG_IN = 'Log in: mem login --email <you@example.org>'
/** For calls that models and keys are asked with. */
export const LOG_IN_OR_KEY = `${LOG_IN}; or bring a virtual key: --key-file, MEM_GATEWAY_KEY.`

/** What to do next, by the codes of git-host.md 2.6; the others' messages say it themselves. */
export const HINTS: Readonly<Record<string, string>> = {
  unauthorized: LOG_IN,
  invalid_api_key: LOG_IN_OR_KEY,
  forbidden: 'Ask an admin of the organization, or a manager of the project.',
  not_found: "Check the id or name: the noun's `list` shows what there is for you.",
  secret_required: 'The address changes: give every secret again, so that none goes where it was not meant for.',
  not_initialized:
    "On the server's machine, with its --config and --data-dir: mem platform init --organization <name> --email <you@example.org>",
  internal: "The server's log says more, under the request id that --verbose shows.",
}
