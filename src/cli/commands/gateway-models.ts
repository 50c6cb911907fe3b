import { path } from '../../client/transport.ts'
import { SURFACES } from '../../gateway/model.ts'
import type { RouteExplanation } from '../../gateway/routing/router.ts'
import { defineCommand } from '../command.ts'
import { usageError } from '../exit.ts'
import { ACCESS_FLAGS, accessOf } from '../gateway/access.ts'
import { given } from '../gateway/fields.ts'
import { CREDENTIALS, KEYS, find, listAll } from '../gateway/find.ts'
import type { Row } from '../output.ts'
import { callRest } from '../platform/rest.ts'

interface Model {
  id: string
  owned_by: string
  created: number
}

export const models = defineCommand({
  flags: {
    explain: { value: 'name', help: 'Which credentials would serve this name, in order, and why not' },
    surface: { value: 'surface', choices: SURFACES, help: 'With --explain: for such calls (chat)' },
    key: { value: 'key', help: 'With --explain: for calls with this virtual key, by name or id' },
    ...ACCESS_FLAGS,
  },
  notes: 'The names that you may call. --explain needs a session, and calls no provider.',
  examples: ['gateway models', 'gateway models --explain claude-opus-4-7', 'gateway models --explain fast --key ci'],
  async run(context, input) {
    const { output } = context
    refuseUseless(input)
    if (input.explain === undefined) {
      const { token } = await accessOf(context, input)
      const call = { method: 'GET', path: path`/rest/v1/llm-gateway/v1/models` }
      const answer = await callRest<{ data: Model[] }>(context, { 'session-token': token }, call, 'data')
      await output.list(answer, answer.data, ({ id, owned_by }) => [id, owned_by])
      if (answer.data.length === 0) output.note(NONE)
      return
    }
    const key = input.key === undefined ? undefined : await find(context, input, KEYS, input.key)
    const body = given({ model: input.explain, surface: input.surface, key_id: key?.id })
    const call = { method: 'POST', path: path`/rest/v1/llm-gateway/route`, body }
    const explained = await callRest<RouteExplanation>(context, input, call, 'candidates')
    const names = new Map((await listAll(context, input, CREDENTIALS)).map(({ id, name }) => [id, name]))
    await output.list(explained, explained.candidates, (each): Row => [
      names.get(each.credential_id) ?? each.credential_id,
      each.model,
      each.ring === 0 ? 'member' : `ring ${each.ring}`,
      `priority ${each.priority}`,
      `${Math.round(each.share * 1000) / 10} %`,
      each.state,
      each.skipped && `skipped: ${each.skipped}`,
    ])
  },
})

/** An open kind serves names that nobody has written down. */
const NONE =
  'no model is known by name; a group, or --default-model, --allow and --map of a credential, give names. Credentials of ' +
  'open kinds, as openai-compatible, may serve others: mem gateway models --explain <name>'

interface Filters {
  explain: string | undefined
  surface: string | undefined
  key: string | undefined
  'key-file': string | undefined
}

/** @throws CliError (usage) for a flag that would change nothing */
function refuseUseless({ explain, surface, key, 'key-file': file }: Filters): void {
  if (explain !== undefined && file !== undefined) {
    throw usageError('--explain needs a session, and takes no --key-file', 'To explain for a key, name it: --key ci')
  }
  if (explain !== undefined || (surface ?? key) === undefined) return
  const flag = key === undefined ? 'surface' : 'key'
  throw usageError(`--${flag} is for --explain`, 'Name the model to explain: --explain <name>')
}
