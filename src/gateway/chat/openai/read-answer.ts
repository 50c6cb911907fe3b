import * as z from 'zod'
import { isMap } from '../../../base/json.ts'
import { AnswerError, startOf, type ChatEvent, type StopReason, type Usage } from '../events.ts'
import { present } from '../parse.ts'
import { knownCall } from './known-call.ts'

const callSchema = z.object({
  index: z.int().nullish(),
  id: z.string().nullish(),
  function: z.object({ name: z.string().nullish(), arguments: z.string().nullish() }).nullish(),
})

/** Mistral's: what was thought and said stand in one list. */
const chunkSchema = z.object({
  type: z.string(),
  text: z.string().nullish(),
  thinking: z.array(z.object({ text: z.string().nullish() })).nullish(),
})

const messageSchema = z.object({
  content: z.union([z.string(), z.array(chunkSchema)]).nullish(),
  refusal: z.string().nullish(),
  reasoning_content: z.string().nullish(),
  reasoning: z.string().nullish(),
  tool_calls: z.array(callSchema).nullish(),
})

const answerSchema = z.object({
  id: z.string().nullish(),
  model: z.string().nullish(),
  choices: z
    .array(
      z.object({
        message: messageSchema.nullish(),
        delta: messageSchema.nullish(),
        finish_reason: z.string().nullish(),
      }),
    )
    .nullish(),
  usage: z.unknown().optional(),
  x_groq: z.object({ usage: z.unknown().optional() }).nullish(),
  error: z.unknown().optional(),
  object: z.unknown().optional(),
})

const STOPS: ReadonlyMap<string, StopReason> = new Map([
  ['stop', 'stop'],
  ['length', 'length'],
  ['model_length', 'length'],
  ['tool_calls', 'tool_calls'],
  ['function_call', 'tool_calls'],
  ['content_filter', 'content_filter'],
])

/** Tokens of what stands under `usage`, the prompt with its cached parts; undefined when it tells none. Contract: 5.5. */
export function openAiUsage(usage: unknown): Usage | undefined {
  if (!isMap(usage)) return undefined
  const input = tokensOf(usage, 'prompt_tokens')
  const output = tokensOf(usage, 'completion_tokens')
  if (input === undefined && output === undefined) return undefined
  const { prompt_tokens_details: prompt, completion_tokens_details: completion } = usage
  return {
    input: input ?? 0,
    cacheRead: tokensOf(prompt, 'cached_tokens') ?? 0,
    cacheWrite: tokensOf(prompt, 'cache_write_tokens') ?? 0,
    cacheWrite1h: 0,
    output: output ?? 0,
    reasoning: tokensOf(completion, 'reasoning_tokens') ?? 0,
  }
}

/** By hand: every answer has one, and a schema takes ten times as long. */
function tokensOf(counts: unknown, name: string): number | undefined {
  const count = isMap(counts) ? counts[name] : undefined
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 ? count : undefined
}

/** Unknown reasons read as `stop`. */
export const openAiStop = (reason: string): StopReason => STOPS.get(reason) ?? 'stop'

/** Reads the chunks of a stream, or a whole answer as if it were one. Contract: gateway.md 5.4. */
export class OpenAiReader {
  #started = false
  readonly #calls: Call[] = []
  readonly #callId: (index: number) => string

  /** @param callId makes the ids that a provider leaves out, others in each turn of a conversation */
  constructor(callId: (index: number) => string) {
    this.#callId = callId
  }

  /** @param data of an event, or a body. @throws AnswerError */
  read(data: string): ChatEvent[] {
    if (data === '[DONE]') return []
    const answer = parseAnswer(data)
    const events: ChatEvent[] = []
    if (present(answer.error) !== undefined || answer.object === 'error') return [{ kind: 'error', data }]
    const usage = openAiUsage(answer.usage) ?? openAiUsage(answer.x_groq?.usage)
    const [choice] = answer.choices ?? []
    if (!this.#started && choice) {
      this.#started = true
      events.push(startOf(answer))
    }
    events.push(...this.#message(choice?.delta ?? choice?.message ?? {}))
    // Some providers give an empty reason in every chunk, which is none.
    if (choice?.finish_reason) {
      events.push(...this.#calls.flatMap((call) => (call.waiting === undefined ? [] : named(call, ''))))
      events.push({ kind: 'stop', reason: this.#stop(choice.finish_reason) })
    }
    if (usage) events.push({ kind: 'usage', usage })
    return events
  }

  #message(message: Partial<z.output<typeof messageSchema>>): ChatEvent[] {
    const { content } = message
    const thought = [message.reasoning_content, message.reasoning].find(Boolean)
    const said = Array.isArray(content) ? content.flatMap(saidIn) : [reasoned(thought), spoken(content)]
    return [
      ...[...said, spoken(message.refusal)].flatMap((event) => event ?? []),
      ...(message.tool_calls ?? []).flatMap((call) => this.#call(call)),
    ]
  }

  /** A function that had to be called ends with `stop`, as if nothing had been called. */
  #stop(finish: string): StopReason {
    const reason = openAiStop(finish)
    return reason === 'stop' && this.#calls.length > 0 ? 'tool_calls' : reason
  }

  #call({ index, id, function: called }: z.output<typeof callSchema>): ChatEvent[] {
    const text = called?.arguments ?? ''
    const known = knownCall(this.#calls, { index, id }, Boolean(called?.name))
    const call = known ?? this.#begun(index, id)
    if (call.waiting === undefined) return text === '' ? [] : [{ kind: 'arguments', index: call.at, text }]
    call.waiting += text
    return called?.name ? named(call, called.name) : []
  }

  #begun(index: unknown, id: string | null | undefined): Call {
    const at = this.#calls.length
    const told = id === '' ? undefined : id
    const call = { at, index, id: told ?? this.#callId(at), waiting: '' }
    this.#calls.push(call)
    return call
  }
}

interface Call {
  readonly at: number
  /** As the provider gives it. */
  readonly index: unknown
  readonly id: string
  /** Its arguments, until its name has come. */
  waiting: string | undefined
}

/** A call, with the arguments that came before its name. */
function named(call: Call, name: string): ChatEvent[] {
  const { at: index, id, waiting: text } = call
  call.waiting = undefined
  return [{ kind: 'call', index, id, name }, ...(text ? [{ kind: 'arguments', index, text } as const] : [])]
}

function parseAnswer(data: string): z.output<typeof answerSchema> {
  try {
    return answerSchema.parse(JSON.parse(data))
  } catch (error) {
    throw new AnswerError('the provider sent no chat completion', { cause: error })
  }
}

const spoken = (text: string | null | undefined): ChatEvent | undefined => (text ? { kind: 'text', text } : undefined)

const reasoned = (text: string | null | undefined): ChatEvent | undefined =>
  text ? { kind: 'reasoning', family: 'openai', text } : undefined

function saidIn({ type, text, thinking }: z.output<typeof chunkSchema>): (ChatEvent | undefined)[] {
  return type === 'thinking' ? (thinking ?? []).map((each) => reasoned(each.text)) : [spoken(text)]
}
