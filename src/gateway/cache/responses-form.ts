import { isMap } from '../../base/json.ts'
import type { Json } from '../chat/json.ts'
import type { Assembly, Form } from './form.ts'
import { mapsOf, textOf } from './json.ts'

/** OpenAI's responses. */
export const ResponsesForm: Form = {
  assemble: () => new ResponseAssembly(),
  toStream: (response) => {
    let number = 0
    const event = (type: string, fields: Json): string =>
      `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number++, ...fields })}\n\n`
    const begun = { ...response, status: 'in_progress', output: [], usage: null }
    const start = event('response.created', { response: begun }) + event('response.in_progress', { response: begun })
    const items = mapsOf(response['output']).map((item, index) => itemStream(event, item, index))
    return `${start}${items.join('')}${event('response.completed', { response })}`
  },
}

type Write = (type: string, fields: Json) => string

/** An item as it grows: messages by their parts, calls by their arguments; others come whole. */
function itemStream(event: Write, item: Json, index: number): string {
  const at = { item_id: item['id'], output_index: index }
  const { content, arguments: call } = item
  const isMessage = item['type'] === 'message'
  const empty = { ...item, ...(isMessage && { content: [] }), ...(call !== undefined && { arguments: '' }) }
  const added = event('response.output_item.added', { output_index: index, item: { ...empty, status: 'in_progress' } })
  const said = isMessage ? mapsOf(content).map((part, i) => partStream(event, part, { ...at, content_index: i })) : []
  if (typeof call === 'string') {
    said.push(event('response.function_call_arguments.delta', { ...at, delta: call }))
    said.push(event('response.function_call_arguments.done', { ...at, name: item['name'], arguments: call }))
  }
  return `${added}${said.join('')}${event('response.output_item.done', { output_index: index, item })}`
}

function partStream(event: Write, part: Json, at: Json): string {
  const isText = part['type'] === 'output_text'
  const name = isText ? 'text' : 'refusal'
  const text = textOf(part[name])
  const kind = isText ? 'response.output_text' : 'response.refusal'
  return [
    event('response.content_part.added', { ...at, part: { ...part, [name]: '' } }),
    event(`${kind}.delta`, { ...at, delta: text, ...(isText && { logprobs: [] }) }),
    event(`${kind}.done`, { ...at, [name]: text, ...(isText && { logprobs: [] }) }),
    event('response.content_part.done', { ...at, part }),
  ].join('')
}

/** The last event holds the whole. */
class ResponseAssembly implements Assembly {
  #response: Json | undefined

  read({ type, response }: Json): void {
    if (type === 'response.completed' && isMap(response)) this.#response = response
  }

  whole(): Json | undefined {
    return this.#response
  }
}
