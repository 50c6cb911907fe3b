import { readAnthropicRequest } from '../../../src/gateway/chat/anthropic/read-request.ts'
import { writeAnthropicRequest } from '../../../src/gateway/chat/anthropic/write-request.ts'
import { writeConverseRequest } from '../../../src/gateway/chat/converse/write-request.ts'
import { writeGeminiRequest } from '../../../src/gateway/chat/gemini/write-request.ts'
import { readOpenAiRequest } from '../../../src/gateway/chat/openai/read-request.ts'
import { writeOpenAiRequest } from '../../../src/gateway/chat/openai/write-request.ts'
import { writeJson } from '../../../src/gateway/chat/raw-json.ts'
import type { Target } from '../../../src/gateway/chat/target.ts'

export const TARGET: Target = {
  model: 'anthropic.claude-x',
  sampling: true,
  reasoning: 'adaptive',
  defaultMaxTokens: 4096,
  maxTokensField: 'max_completion_tokens',
}
export const PNG = { mediaType: 'image/png', data: 'aGk=' }

export const READERS = { openai: readOpenAiRequest, anthropic: readAnthropicRequest }
export const WRITERS = {
  openai: writeOpenAiRequest,
  anthropic: writeAnthropicRequest,
  gemini: writeGeminiRequest,
  converse: writeConverseRequest,
}

export interface Translated {
  /** As it is sent. */
  text: string
  body: Record<string, unknown>
  dropped: string[]
}

export function translate(
  from: keyof typeof READERS,
  to: keyof typeof WRITERS,
  body: object,
  target?: Partial<Target>,
): Translated {
  return translateText(from, to, JSON.stringify({ model: 'm', ...body }), target)
}

export function translateText(
  from: keyof typeof READERS,
  to: keyof typeof WRITERS,
  source: string,
  target?: Partial<Target>,
): Translated {
  const dropped = new Set<string>()
  const drop = (field: string): void => void dropped.add(field)
  const request = READERS[from](JSON.parse(source), drop, source)
  const text = writeJson(WRITERS[to](request, { ...TARGET, ...target }, drop))
  return { text, body: JSON.parse(text), dropped: [...dropped] }
}

export const openAi = (to: keyof typeof WRITERS, body: object, target?: Partial<Target>): Translated =>
  translate('openai', to, { messages: [{ role: 'user', content: 'hi' }], ...body }, target)

export const TOOL = {
  type: 'function',
  function: { name: 'rain', description: 'Is it wet?', parameters: { type: 'object' } },
}

export const CONVERSATION = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'Is it wet?' },
  { role: 'assistant', content: null, tool_calls: ['a', 'b'].map((id) => call(id)) },
  { role: 'tool', tool_call_id: 'b', content: 'no' },
  { role: 'tool', tool_call_id: 'a', content: 'yes' },
  { role: 'user', content: [{ type: 'text', text: 'And this?' }, image()] },
]

export function call(id: string, args = '{"at":1}'): object {
  return { id, type: 'function', function: { name: 'rain', arguments: args } }
}

export function image(): object {
  return { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG.data}` } }
}

export function answer(id: string): object {
  return { role: 'tool', tool_call_id: id, content: 'yes' }
}
