import { path } from '../../client/transport.ts'
import { USER_ROLES, type Flag, type User } from '../../platform/model.ts'
import { defineCommand } from '../command.ts'
import { usageError } from '../exit.ts'
import { readSecretFile } from '../input.ts'
import type { Row } from '../output.ts'
import { PASSWORD_FLAG, readPassword } from '../platform/password.ts'
import { callRest, RANGE_FLAGS, rangeQuery, SESSION_FLAG, showList, tokenOf, type List } from '../platform/rest.ts'

const FIELD_FLAGS = {
  'display-name': { value: 'name', help: 'Name for people' },
  role: { value: 'role', choices: USER_ROLES, help: 'admin keeps users, flags and connections (member)' },
  active: { negatable: true, help: 'May log in' },
} as const

const row = ({ id, email, display_name, role, active }: User): Row => [
  id,
  email,
  display_name,
  role,
  active ? 'active' : 'inactive',
]

export const usersAdd = defineCommand({
  flags: {
    email: { value: 'address', required: true, help: 'E-mail address, for the login' },
    ...PASSWORD_FLAG,
    ...FIELD_FLAGS,
    ...SESSION_FLAG,
  },
  examples: [
    'platform users add --email bo@example.org --password-file password',
    'platform users add --email bo@example.org --role admin',
  ],
  async run(context, input) {
    const { email, 'display-name': display_name, role, active } = input
    tokenOf(context, input) // before anybody is asked
    const password = await readPassword(context.io, input['password-file'], { isNew: true })
    const body = { email, password, display_name, role, active }
    const user = await callRest<User>(context, input, { method: 'POST', path: path`/rest/v1/platform/users`, body })
    await context.output.answer(user, () => [row(user)])
  },
})

export const usersList = defineCommand({
  flags: { ...RANGE_FLAGS, ...SESSION_FLAG },
  examples: ['platform users list', 'platform users list --limit 20 --output json'],
  async run(context, input) {
    const call = { method: 'GET', path: path`/rest/v1/platform/users`, query: rangeQuery(input) }
    const answer = await callRest<List<'users', User>>(context, input, call)
    await showList(context, answer, answer.users, row)
  },
})

export const usersSet = defineCommand({
  args: { id: { help: 'User id' } },
  flags: {
    email: { value: 'address', help: 'New e-mail address' },
    'password-file': { value: 'file', help: 'File with a new password; `-` is standard input' },
    ...FIELD_FLAGS,
    ...SESSION_FLAG,
  },
  notes:
    "What no flag names stays as it is; an empty value (--display-name '') clears it. Who is no longer active has no " +
    'session any more.',
  examples: ['platform users set 2 --no-active', 'platform users set 2 --role admin --display-name Bo'],
  async run(context, input) {
    const { id, email, 'password-file': file, 'display-name': display_name, role, active } = input
    const password = file === undefined ? undefined : await readSecretFile(context.io, file)
    const body = { email, password, display_name, role, active }
    const call = { method: 'PATCH', path: path`/rest/v1/platform/users/${id}`, body }
    const user = await callRest<User>(context, input, call)
    await context.output.answer(user, () => [row(user)])
  },
})

const flagRow = ({ name, enabled }: Flag): Row => [name, enabled ? 'on' : 'off']

export const flagsList = defineCommand({
  flags: SESSION_FLAG,
  examples: ['platform flags list'],
  async run(context, input) {
    const call = { method: 'GET', path: path`/rest/v1/platform/feature-flags` }
    const answer = await callRest<{ flags: Flag[] }>(context, input, call, 'flags')
    await context.output.list(answer, answer.flags, flagRow)
  },
})

export const flagsSet = defineCommand({
  args: { name: { help: 'Name of the flag' } },
  flags: { enabled: { negatable: true, help: 'On for the organization' }, ...SESSION_FLAG },
  examples: ['platform flags set feature_git_host --enabled', 'platform flags set feature_git_host --no-enabled'],
  async run(context, input) {
    const { name, enabled } = input
    if (enabled === undefined) throw usageError('on or off?', 'Say --enabled or --no-enabled.')
    const call = { method: 'PUT', path: path`/rest/v1/platform/feature-flags/${name}`, body: { enabled } }
    const flag = await callRest<Flag>(context, input, call, 'enabled')
    await context.output.answer(flag, () => [flagRow(flag)])
  },
})
