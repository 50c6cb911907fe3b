import type { Context } from '../command.ts'
import { defineCommand } from '../command.ts'
import { usageError } from '../exit.ts'
import { planOf, readEntries, type Step } from '../gateway/apply-plan.ts'
import { at, CREDENTIALS, listAll } from '../gateway/find.ts'
import { readText } from '../input.ts'
import { callRest, sendRest, SESSION_FLAG, type SessionInput } from '../platform/rest.ts'

export const apply = defineCommand({
  flags: {
    file: { value: 'file', required: true, help: 'YAML list of credentials; `-` is standard input' },
    'dry-run': { help: 'Only tell what would be done' },
    prune: { help: 'Remove shared credentials that are not in the list' },
    'renew-secrets': { help: 'Send every secret again: most cannot be compared with what is saved' },
    ...SESSION_FLAG,
  },
  notes:
    'Makes, by name, what the list says; what is so already is left alone. The fields are those of the credential; keys come ' +
    'from api_key_env or api_key_file, other secrets alike: secret_access_key_env inside config.',
  examples: [
    'gateway credentials apply --file credentials.yaml --dry-run',
    'gateway credentials apply --file credentials.yaml --prune',
  ],
  async run(context, input) {
    const { io, output } = context
    const { file } = input
    const bodies = await readEntries(io, file, await parsed(file, await readText(io, file)))
    const there = await listAll(context, input, CREDENTIALS)
    const plan = planOf(bodies, there, { prune: input.prune ?? false, renewSecrets: input['renew-secrets'] ?? false })
    if (!input['dry-run']) for (const step of plan) await carryOut(context, input, step)
    const shown = plan.map(({ action, name }) => ({ name, action }))
    await output.list({ dry_run: input['dry-run'] ?? false, credentials: shown }, shown, ({ name, action }) => [
      name,
      DONE[action],
    ])
    if (input['dry-run']) output.note('nothing was changed')
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

async function carryOut(context: Context, input: SessionInput, { action, id = 0, body = {} }: Step): Promise<void> {
  if (action === 'create') await callRest(context, input, { method: 'POST', path: CREDENTIALS.path, body })
  else if (action === 'update') await callRest(context, input, { method: 'PUT', path: at(CREDENTIALS, id), body })
  else if (action === 'remove') await sendRest(context, input, { method: 'DELETE', path: at(CREDENTIALS, id) })
}
