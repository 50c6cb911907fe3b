import { isMap } from '../../base/json.ts'
import { NO_USAGE, type Usage } from '../chat/events.ts'
import type { AnswerFacts, InferenceRequest } from './exchange.ts'

const BYTES_PER_TOKEN = 4
const IMAGE_TOKENS = 1000
/** What of a request is read by the model. */
const READ: readonly string[] = ['system', 'instructions', 'messages', 'input']
/** Strings that are no text. */
const NAMES: ReadonlySet<string> = new Set([
  'type',
  'role',
  'id',
  'tool_call_id',
  'tool_use_id',
  'call_id',
  'signature',
])
const MEDIA: ReadonlySet<unknown> = new Set([
  'image_url',
  'image',
  'input_image',
  'input_audio',
  'file',
  'document',
  'input_file',
])

/** Tokens of a prompt whose provider tells none: a quarter of its text's bytes, 1,000 an image. Contract: gateway.md 7.2. */
export function estimateInputTokens(request: InferenceRequest): number {
  const body = request.json()
  if (!isMap(body)) return 0
  let images = 0
  const bytesIn = (value: unknown): number => {
    if (typeof value === 'string') return Buffer.byteLength(value)
    if (Array.isArray(value)) {
      // A prompt may come as tokens.
      if (typeof value[0] === 'number') return value.length * BYTES_PER_TOKEN
      return value.reduce<number>((sum, each) => sum + bytesIn(each), 0)
    }
    if (!isMap(value)) return 0
    if (MEDIA.has(value['type']) && !('function' in value)) {
      images++
      return 0
    }
    return Object.entries(value).reduce((sum, [name, each]) => (NAMES.has(name) ? sum : sum + bytesIn(each)), 0)
  }
  // Of tools the model reads all: names of arguments say as much as their descriptions.
  const toolBytes = Array.isArray(body['tools']) ? Buffer.byteLength(JSON.stringify(body['tools'])) : 0
  const bytes = READ.reduce((sum, name) => sum + bytesIn(body[name]), toolBytes)
  return Math.ceil(bytes / BYTES_PER_TOKEN) + images * IMAGE_TOKENS
}

/** As much or more, without reading the body: for reservations and rates. Media in it count as images. */
export function roughInputTokens({ body, longest = body.length }: InferenceRequest): number {
  // Most bodies have no part that is as long as what counts as an image.
  if (longest < BYTES_PER_TOKEN * IMAGE_TOKENS) return Math.ceil(body.length / BYTES_PER_TOKEN)
  let bytes = body.length
  /** Where each ends: one may bear both marks. */
  const images = new Set<number>()
  for (const mark of [';base64,', '"data":']) {
    for (let at = body.indexOf(mark); at >= 0; at = body.indexOf(mark, at + 1)) {
      const start = mark === '"data":' ? body.indexOf('"', at + mark.length) + 1 : at + mark.length
      const end = body.indexOf('"', start)
      if (start === 0 || end - start < BYTES_PER_TOKEN * IMAGE_TOKENS || images.has(end)) continue
      bytes -= end - start
      images.add(end)
      at = end
    }
  }
  return Math.ceil(bytes / BYTES_PER_TOKEN) + images.size * IMAGE_TOKENS
}

/** Tokens of a call whose provider reported none. */
export const estimateUsage = (request: InferenceRequest, { textBytes }: Pick<AnswerFacts, 'textBytes'>): Usage => ({
  ...NO_USAGE,
  input: estimateInputTokens(request),
  output: Math.ceil(textBytes / BYTES_PER_TOKEN),
})

/** Answers that a chat asks for at once, each as long as the cap. */
export function choicesAsked({ body, members }: InferenceRequest): number {
  const member = members.get('n')
  const n = member ? Number(body.toString('latin1', member.start, member.end)) : 1
  return Number.isSafeInteger(n) && n > 1 ? n : 1
}
