import { parseWith } from '../../memory/routes/route.ts'
import { agentRequest, collectionRequest, pinRequest, workspaceRequest } from '../../memory/requests.ts'
import type { Workspace } from '../../memory/model.ts'
import { CONSOLE_AGENT } from '../caller.ts'
import type { Form } from '../form.ts'
import { paths } from '../format.ts'
import { openWorkspace, requireConfirm, type Action } from './action.ts'

const TEXTS = ['name', 'region', 'chunker_id', 'embedding_model'] as const
const NUMBERS = ['auto_link_threshold', 'auto_link_max_edges', 'auto_link_max_incoming_per_day'] as const

/** The record that the form asks for: a field left out stays as it was, an empty one is cleared. */
function workspaceFields(form: Form, old: Partial<Workspace> = {}): unknown {
  const { id: _id, created_at: _created, updated_at: _updated, ...kept } = old
  const fields: Record<string, unknown> = { ...kept }
  for (const name of TEXTS) if (form.raw(name) !== undefined) fields[name] = form.text(name)
  for (const name of NUMBERS) if (form.text(name) !== undefined) fields[name] = form.number(name)
  if (form.raw('meta') !== undefined) fields['meta'] = form.object('meta')
  if (form.text('auto_link_enabled') !== undefined) fields['auto_link_enabled'] = form.flag('auto_link_enabled')
  return fields
}

const create: Action = async ({ service }, { form, caller }) => {
  const workspace = await service.workspaces.create(caller, parseWith(workspaceRequest, workspaceFields(form)))
  return { to: paths.workspace(workspace.id), note: `Workspace ${workspace.name} is ready.` }
}

/** Serves `update` and `config`: two forms over one record. */
const update: Action = async (console, request) => {
  const old = await openWorkspace(console, request)
  const body = parseWith(workspaceRequest, workspaceFields(request.form, old))
  const workspace = await console.service.workspaces.replace(request.caller, old.id, body)
  return { to: paths.workspace(workspace.id, 'settings'), note: `The settings of ${workspace.name} are saved.` }
}

const remove: Action = async (console, request) => {
  const { id, name } = await openWorkspace(console, request)
  requireConfirm(request.form, id)
  await console.service.workspaces.delete(request.caller, id)
  return { to: '/ui/workspaces', note: `Workspace ${name} is deleted. Its ledger stays.` }
}

const createCollection: Action = async (console, request) => {
  const { id } = await openWorkspace(console, request)
  const body = parseWith(collectionRequest, { name: request.form.text('name') })
  await console.service.workspaces.createCollection(request.caller, id, body)
  return { to: paths.workspace(id, 'collections'), note: `Collection ${body.name} is created.` }
}

const deleteCollection: Action = async (console, request) => {
  const { id } = await openWorkspace(console, request)
  const collection = request.form.require('collection_id')
  requireConfirm(request.form, collection)
  await console.service.workspaces.deleteCollection(request.caller, id, collection)
  return { to: paths.workspace(id, 'collections'), note: 'The collection is deleted.' }
}

const registerAgent: Action = async (console, request) => {
  const { id } = await openWorkspace(console, request)
  const { form, caller } = request
  const body = parseWith(agentRequest, {
    agent_id: form.text('agent_id'),
    identity_provider: form.text('identity_provider') ?? 'opaque',
    display_name: form.text('display_name'),
    agent_type: form.text('agent_type'),
    model: form.text('model'),
    capabilities: form.object('capabilities'),
    identity_proof: form.object('identity_proof'),
  })
  await console.service.agents.register(caller, id, body)
  return { to: paths.workspace(id, 'agents'), note: `Agent ${body.agent_id} is registered.` }
}

const deactivateAgent: Action = async (console, request) => {
  const { id } = await openWorkspace(console, request)
  const agent = request.form.require('agent_id')
  requireConfirm(request.form, agent)
  await console.service.agents.deactivate(request.caller, id, agent)
  return { to: paths.workspace(id, 'agents'), note: `Agent ${agent} is deactivated.` }
}

const createPin: Action = async (console, request) => {
  const { id } = await openWorkspace(console, request)
  const { form, caller } = request
  const body = parseWith(pinRequest, {
    query: form.text('query'),
    mode: form.text('mode'),
    k: form.number('k'),
    label: form.text('label'),
    watermark: form.text('watermark'),
  })
  await console.service.workspaces.createPin(caller, id, body, CONSOLE_AGENT)
  const { query, mode, k } = body
  return { to: paths.recall(id, { q: query, mode, k }), note: 'The query is saved.' }
}

const deletePin: Action = async (console, request) => {
  const { id } = await openWorkspace(console, request)
  const pin = request.form.require('pin_id')
  requireConfirm(request.form, pin)
  await console.service.workspaces.deletePin(request.caller, id, pin)
  return { to: paths.workspace(id), note: 'The saved query is removed.' }
}

/** Workspaces and the plain records in them. */
export const workspaceActions: Readonly<Record<string, Action>> = {
  'workspaces/create': create,
  'workspaces/update': update,
  'workspaces/config': update,
  'workspaces/delete': remove,
  'collections/create': createCollection,
  'collections/delete': deleteCollection,
  'agents/register': registerAgent,
  'agents/deactivate': deactivateAgent,
  'pins/create': createPin,
  'pins/delete': deletePin,
}
