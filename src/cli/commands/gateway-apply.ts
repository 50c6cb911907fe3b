import type { Credential } from '../../gateway/model.ts'
import type { Context } from '../command.ts'
import { defineCommand } from '../command.ts'
import { CliError, usageError } from '../exit.ts'
import { planOf, readEntries, refuseInUse, type Step } from '../gateway/apply-plan.ts'
import { at, CREDENTIALS, GROUPS, listAll } from '../gateway/find.ts'
import { readText } from '../input.ts'
import { callRest, sendRest, SESSION_FLAG, type SessionInput } from '../platform/rest.ts'

export const apply = defineCommand({
  flags: {
    file: { value: 'file', required: true, help: 'YAML list of credentials; `-` is standard input' },
    'dry-run': { help: 'Only tell what would be done' },
    prune: { help: 'Remove shared credentials that are not in the list' },
    ...SESSION_FLAG,
  },
  notes:
    'Makes, by name, what the list says; what is so already, secrets too, is left alone. The fields are those of the credential; keys come ' +
    'from api_key_env or api_key_file, other secrets alike: secret_access_key_env inside config. What the server would ' +
    'refuse of saved ones is told before anything is done.',
  examples: [
    'gateway credentials apply --file credentials.yaml --dry-run',
    'gateway credentials apply --file credentials.yaml --prune',
  ],
  async run(context, input) {
    const { io, output } = context
    const { file } = input
    const bodies = await readEntries(io, file, await parsed(file, await readText(io, file)))
    const there = await listAll(context, input, CREDENTIALS)
    const plan = planOf(bodies, there, input.prune ?? false)
    if (input.prune) refuseInUse(plan, await listAll(context, input, GROUPS))
    const isDry = input['dry-run'] ?? false
    const shown: Pick<Step, 'name' | 'action'>[] = []
    // What was done is told also where the rest fails.
    try {
      for (const step of plan) {
        shown.push({ name: step.name, action: isDry ? step.action : await carryOut(context, input, step) })
      }
    } finally {
      await output.list({ dry_run: isDry, credentials: shown }, shown, ({ name, action }) => [name, DONE[action]])
    }
    if (!isDry) return
    const isUncertain = plan.some((step) => step.isUncertain)
    output.note(`nothing was changed${isUncertain ? '; whether secrets are new is seen when it is done' : ''}`)
  },
})

const DONE = { create: 'created', update: 'updated', unchanged: 'unchanged', remove: 'removed' } as const

async function parsed(file: string, text: string): Promise<unknown> {
  const { fromYaml } = await import('../yaml.ts')
  try {
    return fromYaml(text)
  } catch (error) {
    throw usageError(`${file} is not YAML: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** @returns what came of it @throws CliError that names the credential */
async function carryOut(context: Context, input: SessionInput, step: Step): Promise<Step['action']> {
  try {
    return await done(context, input, step)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    throw new CliError(error.exitCode, `${step.name}: ${error.message}`, error.hint)
  }
}

async function done(context: Context, input: SessionInput, step: Step): Promise<Step['action']> {
  const { action, isUncertain = false, id = 0, body = {} } = step
  if (action === 'create') await callRest(context, input, { method: 'POST', path: CREDENTIALS.path, body })
  else if (action === 'remove') await sendRest(context, input, { method: 'DELETE', path: at(CREDENTIALS, id) })
  else if (action === 'update' || isUncertain) {
    const { version } = await callRest<Credential>(context, input, { method: 'PUT', path: at(CREDENTIALS, id), body })
    return version === body['version'] ? 'unchanged' : 'update'
  }
  return action
}
