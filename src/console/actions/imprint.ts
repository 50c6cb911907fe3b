import { invalidInput } from '../../memory/errors.ts'
import { parseWith } from '../../memory/routes/route.ts'
import { imprintRequest } from '../../memory/requests.ts'
import type { Form } from '../form.ts'
import { paths } from '../format.ts'
import { count, openWorkspace, type Action } from './action.ts'

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
    if (!UPLOAD_NAME.test(name)) throw invalidInput(`the file ${name} is neither .txt nor .md`, 'file')
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
  throw invalidInput(`the file ${name} is not UTF-8 text`, 'file')
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
export function tagsOf(form: Form): Record<string, unknown> | undefined {
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

/** New Memories, from a field or from files. */
export const imprintActions: Readonly<Record<string, Action>> = {
  'memories/imprint': imprint,
  'memories/upload': upload,
}
