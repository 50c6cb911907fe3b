import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Caller } from '../../memory/caller.ts'
import { invalidInput } from '../../memory/errors.ts'
import type { Workspace } from '../../memory/model.ts'
import { admitConsole, callerOf } from '../caller.ts'
import { setFlash } from '../flash.ts'
import type { Form } from '../form.ts'
import type { Console } from '../settings.ts'

export interface ActionRequest {
  form: Form
  caller: Caller
}

/** Where to go when it is done, and what to say there. */
export interface Done {
  to: string
  note: string
}

export type Action = (console: Console, request: ActionRequest) => Promise<Done>

/** Runs an action and sends the browser on; a request of htmx is told to go there itself. */
export const run =
  (console: Console, action: Action) =>
  async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const signal = AbortSignal.timeout(console.settings.timeoutMs)
    const { to, note } = await action(console, { form: request.form, caller: callerOf(console, request, signal) })
    setFlash(reply, note)
    if (request.headers['hx-request'] === 'true') return reply.header('HX-Redirect', to).send()
    return reply.redirect(to, 303)
  }

/** The workspace that the form names. @throws invalid_input 400, not_found 404. */
export async function workspaceOf({ service }: Console, form: Form): Promise<Workspace> {
  return service.requireWorkspace(form.text('workspace_id') ?? form.text('ws') ?? form.require('workspace_id'))
}

/** The same, with the console admitted to write in it. */
export async function openWorkspace(console: Console, { form, caller }: ActionRequest): Promise<Workspace> {
  const workspace = await workspaceOf(console, form)
  await admitConsole(console, caller, workspace.id)
  return workspace
}

/** What cannot be undone asks for the id once more. @throws invalid_input 400. */
export function requireConfirm(form: Form, ...ids: string[]): void {
  const confirm = form.text('confirm')
  if (confirm === undefined || !ids.includes(confirm)) {
    throw invalidInput(`confirm must be ${ids[0]}: nothing was changed`, 'confirm')
  }
}

/** `1 Cell`, `2 Cells`. */
export const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? '' : 's'}`
