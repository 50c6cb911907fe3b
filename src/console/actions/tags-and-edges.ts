import { parseWith } from '../../memory/routes/route.ts'
import { linkRequest, tagKeySchema, tagRequest } from '../../memory/requests.ts'
import { removeTag, upsertTag } from '../../memory/tags.ts'
import { paths } from '../format.ts'
import { openWorkspace, requireConfirm, type Action } from './action.ts'

const upsert: Action = async (console, request) => {
  const { form, caller } = request
  const { id: ws } = await openWorkspace(console, request)
  const memory = form.require('memory_id')
  const key = parseWith(tagKeySchema, form.text('key') ?? '')
  const { value } = parseWith(tagRequest, { value: form.raw('value') })
  await upsertTag(console.service.mutations, caller, ws, memory, key, value)
  return { to: paths.memory(ws, memory), note: `Tag ${key} is set.` }
}

const remove: Action = async (console, request) => {
  const { form, caller } = request
  const { id: ws } = await openWorkspace(console, request)
  const memory = form.require('memory_id')
  const key = parseWith(tagKeySchema, form.text('key') ?? '')
  // One form holds the buttons of all tags, so its confirmation can only name the Memory.
  requireConfirm(form, key, memory)
  await removeTag(console.service.mutations, caller, ws, memory, key)
  return { to: paths.memory(ws, memory), note: `Tag ${key} is removed.` }
}

const link: Action = async (console, request) => {
  const { form, caller } = request
  const { id: ws } = await openWorkspace(console, request)
  console.service.requireGraph()
  const source = form.text('source_memory_id') ?? form.require('memory_id')
  const body = parseWith(linkRequest, {
    target_memory_id: form.text('target_memory_id'),
    edge_type: form.text('edge_type') ?? form.text('type'),
    properties_json: form.object('properties_json') ?? form.object('properties'),
  })
  await console.service.links.link(caller, ws, { ...body, source_memory_id: source })
  return { to: paths.memory(ws, source, { tab: 'edges' }), note: 'Linked.' }
}

const unlink: Action = async (console, request) => {
  const { form, caller } = request
  const { id: ws } = await openWorkspace(console, request)
  console.service.requireGraph()
  const edge = form.require('edge_id')
  requireConfirm(form, edge)
  await console.service.links.unlink(caller, ws, edge)
  const memory = form.text('memory_id')
  return { to: memory ? paths.memory(ws, memory, { tab: 'edges' }) : paths.graph(ws), note: 'The Edge is removed.' }
}

/** Tags and Edges. */
export const tagAndEdgeActions: Readonly<Record<string, Action>> = {
  'tags/upsert': upsert,
  'tags/delete': remove,
  'edges/link': link,
  'edges/unlink': unlink,
}
