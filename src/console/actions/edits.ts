import { MemoryError, invalidInput } from '../../memory/errors.ts'
import type { MemoryWithCells, Workspace } from '../../memory/model.ts'
import { applyPatch } from '../../memory/patch.ts'
import { parseWith } from '../../memory/routes/route.ts'
import { appendRequest, patchRequest, updateRequest, type PatchRequest } from '../../memory/requests.ts'
import type { Form } from '../form.ts'
import { paths } from '../format.ts'
import type { Console } from '../settings.ts'
import { count, openWorkspace, requireConfirm, workspaceOf, type Action, type ActionRequest } from './action.ts'
import { tagsOf } from './imprint.ts'

/** The Memory that the form names, as the form knows it, with its workspace. @throws not_found 404, cas_conflict 412. */
async function openMemory(
  console: Console,
  request: ActionRequest,
): Promise<{ workspace: Workspace; memory: MemoryWithCells }> {
  const workspace = await openWorkspace(console, request)
  const memory = await console.service.memories.lookup(workspace, request.form.require('memory_id'))
  if (isStale(request.form, memory)) {
    const message = 'Somebody changed this Memory meanwhile. Review your change again, or reload the page.'
    throw new MemoryError('cas_conflict', message, {
      expected_watermark: request.form.text('expected_watermark'),
      head_watermark: memory.head_watermark,
    })
  }
  return { workspace, memory }
}

/** The form is about a version that is not the head any more. */
const isStale = (form: Form, { head_watermark: head }: MemoryWithCells): boolean =>
  (form.text('expected_watermark') ?? head) !== head

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
async function edited(name: EditName, { form, caller }: ActionRequest, memory: MemoryWithCells): Promise<string> {
  const content = contentOf(memory)
  if (name === 'patch') return applyPatch(content, patchOf(form, content), caller.signal)
  const text = linesLike(form, 'content', content)
  return name === 'update' ? text : content + text
}

/** An edit as it would come out of what stands there now, before it is saved. @throws patch_anchor_not_found 400, 404. */
export async function previewEdit(
  console: Console,
  request: ActionRequest,
): Promise<{
  workspace: Workspace
  memory: MemoryWithCells
  edit: EditName
  isStale: boolean
  after: string
  fields: [string, string][]
}> {
  const { form } = request
  const workspace = await workspaceOf(console, form)
  const memory = await console.service.memories.lookup(workspace, form.require('memory_id'))
  const edit = EDITS.find((name) => name === form.text('edit'))
  if (!edit) throw invalidInput(`edit must be one of ${EDITS.join(', ')}`, 'edit')
  const after = await edited(edit, request, memory)
  const sent = ['content', 'old_string', 'new_string', 'replace_all', 'patch']
  const fields = sent.flatMap((name): [string, string][] => {
    const value = form.raw(name)
    return value === undefined ? [] : [[name, value]]
  })
  return { workspace, memory, edit, isStale: isStale(form, memory), after, fields }
}

const update: Action = async (console, request) => {
  const { form, caller } = request
  const { workspace, memory } = await openMemory(console, request)
  const content = linesLike(form, 'content', contentOf(memory))
  const body = parseWith(updateRequest, { content, tags: tagsOf(form) })
  const expected = form.require('expected_watermark')
  const { cells_re_embedded } = await console.service.edits.update(caller, workspace, memory.id, body, expected)
  return saved(workspace, memory, `Saved. ${count(cells_re_embedded, 'Cell')} embedded anew.`)
}

const patch: Action = async (console, request) => {
  const { form, caller } = request
  const { workspace, memory } = await openMemory(console, request)
  const body = { patch: patchOf(form, contentOf(memory)) }
  const expected = form.require('expected_watermark')
  const { cells_re_embedded } = await console.service.edits.patch(caller, workspace, memory.id, body, expected)
  return saved(workspace, memory, `Saved. ${count(cells_re_embedded, 'Cell')} embedded anew.`)
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

/** What changes a Memory, or ends it. */
export const editActions: Readonly<Record<string, Action>> = {
  'memories/update': update,
  'memories/patch': patch,
  'memories/append': append,
  'memories/restore': restore,
  'memories/forget': forget,
}
