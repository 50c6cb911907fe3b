import { MemoryError, invalidInput } from '../../memory/errors.ts'
import type { MemoryWithCells, Workspace } from '../../memory/model.ts'
import { applyPatch } from '../../memory/patch.ts'
import { parseWith } from '../../memory/routes/route.ts'
import { appendRequest, imprintRequest, patchRequest, updateRequest, type PatchRequest } from '../../memory/requests.ts'
import type { Form } from '../form.ts'
import { paths } from '../format.ts'
import type { Console } from '../settings.ts'
import { openWorkspace, requireConfirm, type Action, type ActionRequest } from './action.ts'

const imprint: Action = async (console, request) => {
  const workspace = await openWorkspace(console, request)
  const body = parseWith(imprintRequest, { ...imprintFields(request.form), content: request.form.lines('content') })
  const { memory_id, cells_created } = await console.service.imprint.run(request.caller, workspace, body)
  return { to: paths.memory(workspace.id, memory_id), note: `Imprinted, in ${count(cells_created, 'Cell')}.` }
}

const UPLOAD_NAME = /\.(?:txt|md)$/i

/** Each file becomes a Memory with the tag `source_filename`; all are read before the first is written. */
const upload: Action = async (console, request) => {
  const { form, caller } = request
  const workspace = await openWorkspace(console, request)
  const files = form.uploads('file')
  if (files.length === 0) throw invalidInput('choose a file: .txt or .md', 'file')
  const fields = imprintFields(form)
  const bodies = files.map(({ name, bytes }) => {
    if (!UPLOAD_NAME.test(name)) throw invalidInput(`${name} is neither .txt nor .md`, 'file')
    return parseWith(imprintRequest, {
      ...fields,
      content: utf8(name, bytes),
      tags: { ...fields.tags, source_filename: name },
    })
  })
  const made: string[] = []
  for (const body of bodies) made.push((await console.service.imprint.run(caller, workspace, body)).memory_id)
  const [only] = made
  const to = made.length === 1 && only ? paths.memory(workspace.id, only) : paths.memories(workspace.id)
  return { to, note: `${count(made.length, 'file')} uploaded.` }
}

function utf8(name: string, bytes: Buffer): string {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    if (!text.includes('\0')) return text
  } catch {
    // Said below.
  }
  throw invalidInput(`${name} is not UTF-8 text`, 'file')
}

interface ImprintFields {
  collection_id: string | undefined
  chunker_id: string | undefined
  chunker_config: Record<string, unknown> | undefined
  tags: Record<string, unknown> | undefined
  auto_link: false | undefined
}

const imprintFields = (form: Form): ImprintFields => ({
  collection_id: form.text('collection_id'),
  chunker_id: form.text('chunker_id'),
  chunker_config: form.object('chunker_config'),
  tags: tagsOf(form),
  auto_link: form.text('auto_link') === 'false' ? false : undefined,
})

/** A JSON object, or lines of `key=value`. */
function tagsOf(form: Form): Record<string, unknown> | undefined {
  const text = form.text('tags')
  if (text === undefined || text.startsWith('{')) return form.object('tags')
  const lines = text.split('\n').map((line) => line.trim())
  return Object.fromEntries(
    lines
      .filter((line) => line !== '')
      .map((line) => {
        const at = line.indexOf('=')
        if (at < 1) throw invalidInput('tags must be lines of key=value', 'tags')
        return [line.slice(0, at).trim(), line.slice(at + 1).trim()]
      }),
  )
}

/** The Memory that the form names, with its workspace. @throws not_found 404. */
async function openMemory(
  console: Console,
  request: ActionRequest,
): Promise<{ workspace: Workspace; memory: MemoryWithCells }> {
  const workspace = await openWorkspace(console, request)
  return { workspace, memory: await console.service.memories.lookup(workspace, request.form.require('memory_id')) }
}

const EDITS = ['update', 'patch', 'append'] as const
type EditName = (typeof EDITS)[number]

const contentOf = ({ content = '' }: MemoryWithCells): string => content

/** What a text field sent, with the line ends that the Memory has: forms cannot tell them. */
function linesLike(form: Form, name: string, content: string): string {
  const text = form.lines(name)
  const isCrlf = content.includes('\r\n') && !/(?<!\r)\n/.test(content)
  return isCrlf ? text.replaceAll('\n', '\r\n') : text
}

/** One operation from fields, or a list of them as JSON. */
function patchOf(form: Form, content: string): PatchRequest['patch'] {
  const list = form.text('patch')
  if (list !== undefined) return parseWith(patchRequest, { patch: jsonOf(list) }).patch
  const operation = {
    old_string: linesLike(form, 'old_string', content),
    new_string: linesLike(form, 'new_string', content),
    replace_all: form.flag('replace_all'),
  }
  return parseWith(patchRequest, { patch: [operation] }).patch
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw invalidInput('patch must be a JSON list of operations', 'patch')
  }
}

/** What an edit would make of the content. @throws patch_anchor_not_found 400. */
function edited(name: EditName, form: Form, memory: MemoryWithCells): string {
  const content = contentOf(memory)
  if (name === 'patch') return applyPatch(content, patchOf(form, content))
  const text = linesLike(form, 'content', content)
  return name === 'update' ? text : content + text
}

/** An edit as it would come out, before it is saved. */
export async function previewEdit(
  console: Console,
  request: ActionRequest,
): Promise<{
  workspace: Workspace
  memory: MemoryWithCells
  edit: EditName
  after: string
  fields: [string, string][]
}> {
  const { workspace, memory } = await openMemory(console, request)
  const { form } = request
  const edit = EDITS.find((name) => name === form.text('edit'))
  if (!edit) throw invalidInput(`edit must be one of ${EDITS.join(', ')}`, 'edit')
  requireHead(form, memory)
  const after = edited(edit, form, memory)
  const sent = ['content', 'old_string', 'new_string', 'replace_all', 'patch', 'expected_watermark']
  const fields = sent.flatMap((name): [string, string][] => {
    const value = form.raw(name)
    return value === undefined ? [] : [[name, value]]
  })
  return { workspace, memory, edit, after, fields }
}

function requireHead(form: Form, { head_watermark: head }: MemoryWithCells): void {
  const expected = form.text('expected_watermark')
  if (expected === undefined || expected === head) return
  throw new MemoryError('cas_conflict', 'Somebody changed this Memory meanwhile. Reload it, then edit again.', {
    expected_watermark: expected,
    head_watermark: head,
  })
}

const update: Action = async (console, request) => {
  const { form, caller } = request
  const { workspace, memory } = await openMemory(console, request)
  const body = parseWith(updateRequest, { content: edited('update', form, memory), tags: tagsOf(form) })
  const expected = form.require('expected_watermark')
  const { cells_re_embedded } = await console.service.edits.update(caller, workspace, memory.id, body, expected)
  return saved(workspace, memory, `Saved. ${count(cells_re_embedded, 'Cell')} embedded anew.`)
}

const patch: Action = async (console, request) => {
  const { form, caller } = request
  const { workspace, memory } = await openMemory(console, request)
  const body = { patch: patchOf(form, contentOf(memory)) }
  const expected = form.require('expected_watermark')
  const { patches_applied } = await console.service.edits.patch(caller, workspace, memory.id, body, expected)
  return saved(workspace, memory, `Saved. ${count(patches_applied, 'replacement')} made.`)
}

const append: Action = async (console, request) => {
  const { form, caller } = request
  const { workspace, memory } = await openMemory(console, request)
  const body = parseWith(appendRequest, { content: linesLike(form, 'content', contentOf(memory)) })
  const expected = form.text('expected_watermark')
  const { cells_added } = await console.service.edits.append(caller, workspace, memory.id, body, expected)
  return saved(workspace, memory, `Saved. ${count(cells_added, 'Cell')} added.`)
}

/** An update with the old content; the tags of now stay. */
const restore: Action = async (console, request) => {
  const { form, caller } = request
  const { workspace, memory } = await openMemory(console, request)
  const watermark = form.require('watermark')
  const { content = '', current_watermark } = await console.service.memories.at(workspace, memory.id, watermark)
  const expected = form.text('expected_watermark') ?? current_watermark
  await console.service.edits.update(caller, workspace, memory.id, { content }, expected)
  return saved(workspace, memory, 'Restored, as a new version.')
}

const forget: Action = async (console, request) => {
  const { form, caller } = request
  const { workspace, memory } = await openMemory(console, request)
  requireConfirm(form, memory.id)
  const expected = form.text('expected_watermark')
  const redact = form.flag('redact_audit')
  const { cascaded_edges } = await console.service.forget.run(caller, workspace.id, memory.id, redact, expected)
  return {
    to: paths.memories(workspace.id),
    note: `Forgotten${cascaded_edges > 0 ? `, with ${count(cascaded_edges, 'Edge')}` : ''}.`,
  }
}

const saved = ({ id: ws }: Workspace, { id }: MemoryWithCells, note: string) => ({ to: paths.memory(ws, id), note })

const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? '' : 's'}`

export const memoryActions: Readonly<Record<string, Action>> = {
  'memories/imprint': imprint,
  'memories/upload': upload,
  'memories/update': update,
  'memories/patch': patch,
  'memories/append': append,
  'memories/restore': restore,
  'memories/forget': forget,
}
