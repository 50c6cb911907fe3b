import * as z from 'zod'
import { path } from '../../client/transport.ts'
import type { Organization, User } from '../../platform/model.ts'
import { defineCommand } from '../command.ts'
import { CliError, EXIT } from '../exit.ts'
import { PASSWORD_FLAG, readPassword } from '../platform/password.ts'
import { foreignAnswer } from '../output.ts'
import { callOpenRest, callRest, sendRest, SESSION_FLAG } from '../platform/rest.ts'
import { isOf, readSession, removeSession, writeSession } from '../platform/session-file.ts'

const sessionSchema = z.looseObject({
  token: z.string(),
  expires_at: z.string(),
  user: z.looseObject({ email: z.string() }),
})

export const login = defineCommand({
  flags: { email: { value: 'address', required: true, help: 'Your e-mail address' }, ...PASSWORD_FLAG },
  notes:
    'Keeps the session in ~/.mem/session.json for the verbs of `mem platform` and `mem gateway`, at this --endpoint only.',
  examples: ['login --email ada@example.org', 'login --email ada@example.org --password-file - < password'],
  async run(context, { email, 'password-file': file }) {
    const { io, output, settings } = context
    const password = await readPassword(io, file, { isNew: false })
    const body = { email, password }
    const call = { method: 'POST', path: path`/rest/v1/platform/login`, body }
    const { data: session } = sessionSchema.safeParse(await callOpenRest<unknown>(context, call))
    if (!session) throw foreignAnswer(settings)
    const { token, expires_at, user } = session
    writeSession(io, { endpoint: settings.endpoint, token, expires_at, email: user.email })
    await output.answer(session, () => [[user.email, 'logged in', `until ${expires_at}`]])
  },
})

export const logout = defineCommand({
  flags: SESSION_FLAG,
  examples: ['logout'],
  async run(context, input) {
    const saved = readSession(context.io)
    try {
      await sendRest(context, input, { method: 'POST', path: path`/rest/v1/platform/logout` })
    } catch (error) {
      const hasEnded = error instanceof CliError && error.exitCode === EXIT.unauthorized
      if (!hasEnded || !saved || !isOf(saved, context.settings.endpoint)) throw error
    }
    const isSaved = input['session-token'] === undefined && !context.io.env['MEM_SESSION_TOKEN']
    if (isSaved) removeSession(context.io)
    context.output.done(isSaved ? (saved?.email ?? '') : 'session', 'logged out')
  },
})

export const whoami = defineCommand({
  flags: SESSION_FLAG,
  examples: ['whoami', 'whoami --output json'],
  async run(context, input) {
    const call = { method: 'GET', path: path`/rest/v1/platform/me` }
    const me = await callRest<{ user: User; organization: Organization }>(context, input, call, 'user')
    await context.output.answer(me, () => [[me.user.email, me.user.role, me.organization.name]])
  },
})
