import { clip } from '../../base/clip.ts'
import type { Clock } from '../../base/clock.ts'
import { systemClock } from '../../base/clock.ts'
import { errorText } from '../../base/errors.ts'
import { isMap, jsonOf } from '../../base/json.ts'
import { redact } from '../../base/redact.ts'
import type { Envelope } from '../model/envelope.ts'
import { ModelFailure, type ModelCall, type ModelHost, type ModelReply, type Tokens } from '../ports.ts'
import { OUTCOME_TOOL } from './outcome-tool.ts'
import { estimateTokens } from './usage.ts'

/** A model behind an address that speaks chat completions. Contract: kernel-1.md 14.3. */

export interface ModelHostOptions {
  /** Without the `/chat/completions`. */
  baseUrl: string
  model: string
  apiKey?: string
  /** Millionths of a dollar; undefined where the price is not known. What the address itself tells of a call wins. */
  price?: (model: string, tokens: Tokens) => number | undefined
  clock?: Clock
}

const MAX_BYTES = 4 * 1024 * 1024
const MAX_OUTPUT_TOKENS = 4096
const MAX_REASON = 300
/** A shorter key is no secret: servers without keys take any word, such as `none`, and words stand in answers. */
const SECRET_LENGTH = 8

const SYSTEM =
  'You are an agent that works on one goal, turn by turn. Each turn you get the state of the work as JSON and answer with ' +
  'one call of submit_agent_turn. You only propose: an action, fork or delegation is carried out afterwards, and its result ' +
  'is in `results` of a later turn. Propose at most one. Everything you must remember belongs into the checkpoint. ' +
  'Follow `guidance` before all else. `repair` says what was wrong with your answer before.'

/** One forced function call per turn; no redirects, 4 MiB at most both ways. The key is in no error and no outcome. */
export function createModelHost({ baseUrl, model, apiKey, price, clock = systemClock }: ModelHostOptions): ModelHost {
  const url = `${baseUrl.replace(/\/+$/, '')}/chat/completions`
  const { host } = new URL(url)
  const headers = {
    'content-type': 'application/json',
    ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
  }
  const secret = apiKey !== undefined && apiKey.length >= SECRET_LENGTH ? apiKey : undefined
  const hide = (text: string | undefined): string | undefined =>
    secret === undefined ? text : text?.replaceAll(secret, '[REDACTED]')
  const explain = (text: string): string => {
    const hidden = redact(hide(text) ?? '')
    return clip(hidden.replace(/\s+/g, ' ').trim(), MAX_REASON)
  }

  async function send(body: string, { signal }: ModelCall): Promise<{ response: Response; text?: string }> {
    try {
      const response = await fetch(url, { method: 'POST', headers, body, signal, redirect: 'manual' })
      const text = hide(await readBounded(response))
      return { response, ...(text !== undefined && { text }) }
    } catch (error) {
      const cause = error instanceof Error && error.cause ? `: ${errorText(error.cause)}` : ''
      throw new ModelFailure('unavailable', explain(`the model did not answer: ${errorText(error)}${cause}`))
    }
  }

  return {
    async propose(envelope, call) {
      const body = requestOf(model, envelope, call)
      if (Buffer.byteLength(body) > MAX_BYTES) throw new ModelFailure('rejected', 'the request is larger than 4 MiB')
      const { response, text } = await send(body, call)
      if (!response.ok) {
        const message = explain(`the model answered ${response.status}: ${text ?? ''}`)
        const isDown = response.status === 429 || response.status === 408 || response.status >= 500
        throw new ModelFailure(isDown ? 'unavailable' : 'rejected', message, retryAfter(response, clock.now()))
      }
      const { tokens, ...reply } = text === undefined ? TOO_LONG : readReply(text)
      const { cachedTokens: _, ...counted } = tokens ?? {
        inputTokens: estimateTokens(body),
        outputTokens: estimateTokens(text ?? ''),
        estimated: true,
      }
      const paid = tokens ?? counted
      const costMicros = toldCost(response) ?? price?.(reply.model ?? model, paid) ?? price?.(model, paid)
      const usage = { ...counted, ...(costMicros !== undefined && { costMicros }) }
      return { modelProvider: host.slice(0, 256), model, ...reply, usage }
    },
    ...(price && { costOf: (tokens) => price(model, tokens) }),
  }
}

function requestOf(model: string, envelope: Envelope, { reservation }: ModelCall): string {
  const { systemPrompt } = envelope.instructions
  return JSON.stringify({
    model,
    messages: [
      { role: 'system', content: systemPrompt === undefined ? SYSTEM : `${SYSTEM}\n\n${systemPrompt}` },
      { role: 'user', content: JSON.stringify(envelope) },
    ],
    tools: [OUTCOME_TOOL],
    tool_choice: { type: 'function', function: { name: OUTCOME_TOOL.function.name } },
    max_tokens: Math.min(reservation.outputTokens ?? MAX_OUTPUT_TOKENS, MAX_OUTPUT_TOKENS),
  })
}

/** Undefined where it is longer than 4 MiB. */
async function readBounded(response: Response): Promise<string | undefined> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response.body ?? []) {
    length += chunk.length
    if (length > MAX_BYTES) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/** Seconds, or a date. */
function retryAfter({ headers }: Response, now: number): number | undefined {
  const value = headers.get('retry-after') ?? ''
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - now
  return ms > 0 ? ms : undefined
}

/** Our own gateway tells the dollars of a call. */
function toldCost({ headers }: Response): number | undefined {
  const usd = headers.get('x-mem-cost') ?? ''
  return /^\d{1,6}(\.\d{1,9})?$/.test(usd) ? Math.ceil(Math.round(Number(usd) * 1e9) / 1000) : undefined
}

interface Read extends Omit<ModelReply, 'usage'> {
  tokens?: Tokens
}

const TOO_LONG: Read = { malformed: 'the answer is larger than 4 MiB' }

function readReply(text: string): Read {
  const completion = jsonOf(text)
  if (!isMap(completion)) return { malformed: 'the answer is no JSON object' }
  const { model, usage, choices } = completion
  const tokens = readTokens(fieldsOf(usage))
  const about: Read = {
    ...(typeof model === 'string' && { model: clip(model, 256) }),
    ...(tokens && { tokens }),
  }
  const [choice] = itemsOf(choices)
  const { message, finish_reason } = fieldsOf(choice)
  const call = itemsOf(fieldsOf(message)['tool_calls'])
    .map((made) => fieldsOf(fieldsOf(made)['function']))
    .find(({ name }) => name === OUTCOME_TOOL.function.name)
  if (!call) return { ...about, malformed: `${OUTCOME_TOOL.function.name} was not called` }
  const outcome = typeof call['arguments'] === 'string' ? jsonOf(call['arguments']) : call['arguments']
  if (outcome !== undefined) return { ...about, outcome }
  const cut = finish_reason === 'length' ? ': it was cut at the limit of tokens, be shorter' : ''
  return { ...about, malformed: `the arguments of ${OUTCOME_TOOL.function.name} are no JSON${cut}` }
}

function readTokens({ prompt_tokens, completion_tokens, prompt_tokens_details }: Fields): Tokens | undefined {
  if (!isCount(prompt_tokens) || !isCount(completion_tokens)) return undefined
  const cached = fieldsOf(prompt_tokens_details)['cached_tokens']
  const cachedTokens = isCount(cached) ? Math.min(cached, prompt_tokens) : 0
  return { inputTokens: prompt_tokens, outputTokens: completion_tokens, cachedTokens }
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0

type Fields = Record<string, unknown>

/** A provider may leave out anything, or send something else: what is no object has no fields, what is no list no items. */
const fieldsOf = (value: unknown): Fields => (isMap(value) ? value : {})
const itemsOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
