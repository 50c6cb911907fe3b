import type { Prompt, Speech } from '../speech.ts'
import { jsonReply, sse, streamReply, without, type Frame, type Json, type Reply, type Usage } from '../wire.ts'
import { signCall } from './gemini-request.ts'

const STOPS: Readonly<Record<Speech['stop'], string>> = { stop: 'STOP', length: 'MAX_TOKENS', calls: 'STOP' }

/** As Gemini counts: thoughts beside the answer. */
const usageOf = ({ input, cacheRead, output, reasoning }: Usage): Json =>
  without({
    promptTokenCount: input,
    cachedContentTokenCount: cacheRead > 0 ? cacheRead : undefined,
    candidatesTokenCount: output - reasoning,
    thoughtsTokenCount: reasoning > 0 ? reasoning : undefined,
    totalTokenCount: input + output,
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: input }],
  })

function callPart({ id, name, json }: Speech['calls'][number], n: number, signs: boolean): Json {
  const args: unknown = JSON.parse(json)
  return without({
    functionCall: without({ id, name, args }),
    thoughtSignature: signs && n === 0 ? signCall(name, args) : undefined,
  })
}

/** Without SSE a stream is one JSON list. */
function asList(frames: readonly Frame[]): Reply {
  const items = frames.map(({ bytes, ...frame }, i) => ({
    ...frame,
    bytes: Buffer.from(`${i === 0 ? '[' : ','}${bytes.toString().slice('data: '.length, -2)}\r\n`),
  }))
  return {
    status: 200,
    contentType: 'application/json; charset=UTF-8',
    frames: [...items, { bytes: Buffer.from(']') }],
  }
}

/** An answer, whole or as a stream; `blocked` as a finish means that the prompt was. */
export function generateReply(speech: Speech, { stream, model }: Prompt, isSse: boolean): Reply {
  const { usage, isCounted, finish, reasoning, pieces, calls } = speech
  const head = { modelVersion: speech.model, responseId: 'fake0001' }
  const counts = isCounted ? { usageMetadata: usageOf(usage) } : {}
  const counted = isCounted ? { usage } : {}
  if (finish === 'blocked') {
    const blocked = { promptFeedback: { blockReason: 'SAFETY', safetyRatings: [] }, ...counts, ...head }
    return stream ? streamReply([sse(blocked, counted)], 'text/event-stream') : jsonReply(blocked, counted.usage)
  }
  const signs = /^gemini-(3|[4-9])/.test(model)
  const finishReason = finish ?? STOPS[speech.stop]
  const thoughts = reasoning === '' ? [] : [{ text: reasoning, thought: true }]
  const called = calls.map((call, n) => callPart(call, n, signs))
  const candidate = (parts: Json[], more: Json = {}): Json => ({
    candidates: [{ ...(parts.length > 0 && { content: { role: 'model', parts } }), ...more, index: 0 }],
  })
  if (!stream) {
    const text = pieces.length > 0 ? [{ text: pieces.join('') }] : []
    const body = { ...candidate([...thoughts, ...text, ...called], { finishReason }), ...counts, ...head }
    return jsonReply(body, counted.usage)
  }
  const parts: Json[][] = [
    ...thoughts.map((part) => [part]),
    ...pieces.map((text) => [{ text }]),
    ...called.map((part) => [part]),
  ]
  const opening: Usage = { ...usage, output: 0, reasoning: 0 }
  const running = isCounted ? { usageMetadata: usageOf(opening) } : {}
  const frames = [
    ...parts.map((each) =>
      sse({ ...candidate(each), ...running, ...head }, { isContent: true, ...(isCounted && { usage: opening }) }),
    ),
    sse({ ...candidate(parts.length > 0 ? [{ text: '' }] : [], { finishReason }), ...counts, ...head }, counted),
  ]
  return isSse ? streamReply(frames, 'text/event-stream') : asList(frames)
}
