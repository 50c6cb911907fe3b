import type { Prompt, Speech } from '../speech.ts'
import { jsonReply, sse, streamReply, type Frame, type Json, type Reply, type Usage } from '../wire.ts'
import { signThought } from './claude-request.ts'

const STOPS: Readonly<Record<Speech['stop'], string>> = { stop: 'end_turn', length: 'max_tokens', calls: 'tool_use' }

/** As Anthropic counts: the parts of the prompt apart. */
const usageOf = ({ input, cacheRead, cacheWrite, cacheWrite1h, output, reasoning }: Usage): Json => ({
  input_tokens: input - cacheRead - cacheWrite - cacheWrite1h,
  cache_creation_input_tokens: cacheWrite + cacheWrite1h,
  cache_read_input_tokens: cacheRead,
  cache_creation: { ephemeral_5m_input_tokens: cacheWrite, ephemeral_1h_input_tokens: cacheWrite1h },
  output_tokens: output,
  output_tokens_details: { thinking_tokens: reasoning },
  server_tool_use: null,
  service_tier: 'standard',
})

interface Block {
  readonly whole: Json
  /** As it stands at the start of a stream. */
  readonly start: Json
  readonly deltas: readonly Json[]
}

function blocksOf({ reasoning, pieces, calls }: Speech): Block[] {
  const text = pieces.join('')
  const signature = signThought(reasoning)
  const half = Math.ceil(reasoning.length / 2)
  const thought: Block = {
    whole: { type: 'thinking', thinking: reasoning, signature },
    start: { type: 'thinking', thinking: '', signature: '' },
    deltas: [
      ...[reasoning.slice(0, half), reasoning.slice(half)].map((thinking) => ({ type: 'thinking_delta', thinking })),
      { type: 'signature_delta', signature },
    ],
  }
  const told: Block = {
    whole: { type: 'text', text, citations: null },
    start: { type: 'text', text: '', citations: null },
    deltas: pieces.map((piece) => ({ type: 'text_delta', text: piece })),
  }
  return [...(reasoning === '' ? [] : [thought]), ...(text === '' ? [] : [told]), ...calls.map(callOf)]
}

function callOf({ id, name, json }: Speech['calls'][number], n: number): Block {
  const use = {
    type: 'tool_use',
    id: id ?? `toolu_fake${String(n).padStart(18, '0')}`,
    name,
    caller: { type: 'direct' },
  }
  const half = Math.ceil(json.length / 2)
  return {
    whole: { ...use, input: parsed(json) },
    start: { ...use, input: {} },
    deltas: ['', json.slice(0, half), json.slice(half)].map((part) => ({
      type: 'input_json_delta',
      partial_json: part,
    })),
  }
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return json
  }
}

/** A message, whole or as a stream. */
export function messageReply(speech: Speech, { stream }: Prompt): Reply {
  const { usage, isCounted, finish } = speech
  const stopReason = finish ?? STOPS[speech.stop]
  const ends = {
    stop_reason: stopReason,
    stop_sequence: stopReason === 'stop_sequence' ? 'END' : null,
    stop_details: stopReason === 'refusal' ? { type: 'refusal', category: null, explanation: null } : null,
  }
  const head = {
    id: 'msg_fake0001',
    type: 'message',
    role: 'assistant',
    model: speech.model,
    container: null,
    diagnostics: null,
  }
  const blocks = blocksOf(speech)
  if (!stream) {
    const body = {
      ...head,
      content: blocks.map(({ whole }) => whole),
      ...ends,
      ...(isCounted && { usage: usageOf(usage) }),
    }
    return jsonReply(body, isCounted ? usage : undefined)
  }
  const opening: Usage = { ...usage, output: 1, reasoning: 0 }
  const start = { stop_reason: null, stop_sequence: null, stop_details: null }
  const message = { ...head, content: [], ...start, ...(isCounted && { usage: usageOf(opening) }) }
  return streamReply([
    event('message_start', { message }, isCounted ? { usage: opening } : {}),
    event('ping', {}),
    ...blocks.flatMap(({ start: block, deltas }, index) => [
      event('content_block_start', { index, content_block: block }),
      ...deltas.map((delta) => event('content_block_delta', { index, delta }, { isContent: true })),
      event('content_block_stop', { index }),
    ]),
    event('message_delta', { delta: ends, ...(isCounted && { usage: finalUsage(usage) }) }, isCounted ? { usage } : {}),
    event('message_stop', {}),
  ])
}

/** The last word has no split of what was written to the cache. */
function finalUsage(usage: Usage): Json {
  const { cache_creation: _creation, service_tier: _tier, ...rest } = usageOf(usage)
  return rest
}

const event = (type: string, data: Json, more: Partial<Frame> = {}): Frame =>
  sse({ type, ...data }, { event: type, ...more })
