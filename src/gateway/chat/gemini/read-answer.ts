import * as z from 'zod'
import { sha256 } from '../../../base/hash.ts'
import { AnswerError, startOf, type ChatEvent, type StopReason, type Usage } from '../events.ts'
import { present } from '../parse.ts'
import { mapText, textsAt } from '../raw-json.ts'

const count = z.int().nonnegative().nullish().transform(present)

const usageSchema = z.object({
  promptTokenCount: count,
  toolUsePromptTokenCount: count,
  cachedContentTokenCount: count,
  candidatesTokenCount: count,
  thoughtsTokenCount: count,
})

const partSchema = z.object({
  text: z.string().nullish().transform(present),
  thought: z.boolean().nullish().transform(present),
  thoughtSignature: z.string().nullish().transform(present),
  functionCall: z
    .object({
      id: z.string().nullish().transform(present),
      name: z.string(),
      args: z.record(z.string(), z.unknown()).nullish().transform(present),
    })
    .nullish()
    .transform(present),
})

const answerSchema = z.object({
  responseId: z.string().nullish().transform(present),
  modelVersion: z.string().nullish().transform(present),
  candidates: z
    .array(
      z.object({
        content: z
          .object({ parts: z.array(partSchema).nullish().transform(present) })
          .nullish()
          .transform(present),
        finishReason: z.string().nullish().transform(present),
      }),
    )
    .nullish()
    .transform(present),
  promptFeedback: z
    .object({ blockReason: z.string().nullish().transform(present) })
    .nullish()
    .transform(present),
  usageMetadata: usageSchema.nullish().transform(present),
  error: z.unknown().optional().transform(present),
})

/** The first candidate's come first, and no other is read. */
const ARGUMENTS = ['candidates', '*', 'content', 'parts', '*', 'functionCall', 'args']

const STOPS: ReadonlyMap<string, StopReason> = new Map([
  ['STOP', 'stop'],
  ['MAX_TOKENS', 'length'],
  ['CONTINUATION', 'length'],
  ['SAFETY', 'content_filter'],
  ['RECITATION', 'content_filter'],
  ['LANGUAGE', 'content_filter'],
  ['BLOCKLIST', 'content_filter'],
  ['PROHIBITED_CONTENT', 'content_filter'],
  ['SPII', 'content_filter'],
  ['MALFORMED_FUNCTION_CALL', 'malformed'],
  ['UNEXPECTED_TOOL_CALL', 'malformed'],
  ['TOO_MANY_TOOL_CALLS', 'malformed'],
  ['OTHER', 'malformed'],
])

/** Contract: gateway.md 5.5. */
export const geminiUsage = (usage: z.output<typeof usageSchema>): Usage => ({
  input: (usage.promptTokenCount ?? 0) + (usage.toolUsePromptTokenCount ?? 0),
  cacheRead: usage.cachedContentTokenCount ?? 0,
  cacheWrite: 0,
  cacheWrite1h: 0,
  output: (usage.candidatesTokenCount ?? 0) + (usage.thoughtsTokenCount ?? 0),
  reasoning: usage.thoughtsTokenCount ?? 0,
})

/** Reads the chunks of a stream, or a whole answer as if it were one. Contract: gateway.md 5.4. */
export class GeminiReader {
  #started = false
  #calls = -1
  readonly #callId: (index: number) => string

  /** @param callId tells the calls of one conversation from those of others, where the provider leaves their ids out */
  constructor(callId: (index: number) => string) {
    this.#callId = callId
  }

  /** @throws AnswerError */
  read(data: string): ChatEvent[] {
    const answer = parseAnswer(data)
    if (answer.error !== undefined) return [{ kind: 'error', data }]
    const events: ChatEvent[] = []
    if (!this.#started) {
      this.#started = true
      events.push(startOf({ id: answer.responseId, model: answer.modelVersion }))
    }
    const [candidate] = answer.candidates ?? []
    const args = textsAt(data, ARGUMENTS)
    const parts = candidate?.content?.parts ?? []
    events.push(...parts.flatMap((part, i) => this.#part(part, answer.responseId, args[i])))
    if (answer.usageMetadata) events.push({ kind: 'usage', usage: geminiUsage(answer.usageMetadata) })
    if (answer.promptFeedback?.blockReason !== undefined) events.push({ kind: 'error', data })
    else if (candidate?.finishReason !== undefined)
      events.push({ kind: 'stop', reason: this.#stop(candidate.finishReason) })
    return events
  }

  #part(part: z.output<typeof partSchema>, responseId: string | undefined, args: string | undefined): ChatEvent[] {
    const { text, thought, thoughtSignature: signature, functionCall: call } = part
    if (call) {
      const index = ++this.#calls
      const id = call.id ?? madeId(this.#callId(index), responseId, part)
      return [
        { kind: 'call', index, id, name: call.name, ...(signature !== undefined && { signature }) },
        { kind: 'arguments', index, text: mapText(call.args, args) },
      ]
    }
    if (!text) return []
    return [thought ? { kind: 'reasoning', family: 'gemini', text } : { kind: 'text', text }]
  }

  #stop(reason: string): StopReason {
    const stop = reason.startsWith('IMAGE_') ? 'content_filter' : (STOPS.get(reason) ?? 'stop')
    return stop === 'stop' && this.#calls >= 0 ? 'tool_calls' : stop
  }
}

/** Signatures are kept by the ids of calls, and equal requests may be answered by different ones. */
const madeId = (...of: unknown[]): string => `call_${sha256(JSON.stringify(of)).slice(0, 24)}`

function parseAnswer(data: string): z.output<typeof answerSchema> {
  try {
    return answerSchema.parse(JSON.parse(data))
  } catch (error) {
    throw new AnswerError('the provider sent no content', { cause: error })
  }
}
