import { isMap } from '../../base/json.ts'
import type { Json } from '../chat/json.ts'
import { valueAt } from '../relay/frames.ts'

/** Whether something of Mistral's own may stand in these bytes. @param raw as Latin-1 */
export const isMistrals = (raw: string): boolean =>
  valueAt(raw, 'thinking"') >= 0 || raw.includes('"model_length"') || raw[valueAt(raw, 'content"')] === '['

/**
 * Says a chat completion, or a chunk of one, as OpenAI does: chunks of the content become text and `reasoning_content`,
 * `model_length` becomes `length`. Contract: gateway.md 5.2.
 * @returns whether anything changed
 */
export function plainChoices(answer: Json): boolean {
  let isChanged = false
  for (const choice of Array.isArray(answer['choices']) ? answer['choices'] : []) {
    if (!isMap(choice)) continue
    if (choice['finish_reason'] === 'model_length') {
      choice['finish_reason'] = 'length'
      isChanged = true
    }
    for (const message of [choice['message'], choice['delta']]) {
      if (isMap(message) && Array.isArray(message['content'])) {
        isChanged = true
        Object.assign(message, saidIn(message['content']))
      }
    }
  }
  return isChanged
}

function saidIn(chunks: readonly unknown[]): Json {
  const textOf = (chunk: unknown): string => (isMap(chunk) && typeof chunk['text'] === 'string' ? chunk['text'] : '')
  const thoughts = chunks.flatMap((chunk): unknown[] =>
    isMap(chunk) && Array.isArray(chunk['thinking']) ? chunk['thinking'] : [],
  )
  const reasoning = thoughts.map(textOf).join('')
  return { content: chunks.map(textOf).join(''), ...(reasoning !== '' && { reasoning_content: reasoning }) }
}
