import { crc32 } from 'node:zlib'
import { modelTableSchema } from '../../../src/gateway/cost/model-table.ts'
import type { Exchange, InferenceRequest, StreamStep } from '../../../src/gateway/exchange/exchange.ts'
import { UpstreamFault } from '../../../src/gateway/exchange/exchange.ts'
import { createExchanges } from '../../../src/gateway/exchange/make-exchange.ts'
import { Signatures } from '../../../src/gateway/exchange/signatures.ts'
import type { RelayEdits, Upstream } from '../../../src/gateway/kinds/upstream.ts'
import type { Dialect, Kind, Surface } from '../../../src/gateway/model.ts'
import { redactor } from '../../../src/gateway/observe/redact.ts'
import { readMembers } from '../../../src/gateway/relay/body.ts'
import { EventReader, type StreamEvent } from '../../../src/gateway/relay/sse.ts'
import type { Candidate } from '../../../src/gateway/routing/candidate.ts'
import { openCredential } from '../open-credential.ts'

export const NOW = Date.UTC(2026, 9, 22)
export const clock = { now: () => NOW }

const EDITS: RelayEdits = { drop: [], rename: {}, streamUsage: true, modelInBody: true }

/** What each kind's upstream wants of a body. */
const EDITS_OF: Partial<Record<Kind, Partial<RelayEdits>>> = {
  groq: { drop: ['logprobs', 'top_logprobs', 'logit_bias'], streamUsage: false },
  mistral: {
    drop: ['stream_options', 'user', 'store', 'logprobs', 'top_logprobs', 'logit_bias'],
    rename: { max_completion_tokens: 'max_tokens', seed: 'random_seed', dimensions: 'output_dimension' },
    streamUsage: false,
  },
  gemini: { modelInBody: false },
  vertex: { modelInBody: false },
  bedrock: { modelInBody: false },
}

const DIALECTS: Partial<Record<Kind, Dialect>> = {
  anthropic: 'anthropic',
  gemini: 'gemini',
  vertex: 'gemini',
  bedrock: 'converse',
}

export interface CandidateOptions {
  dialect?: Dialect
  model?: string
  row?: object
  config?: Record<string, unknown>
  secrets?: Record<string, string>
  edits?: Partial<RelayEdits>
  alias?: Candidate['alias']
}

export function candidateOf(kind: Kind, options: CandidateOptions = {}): Candidate {
  const { model = 'upstream-model', dialect = DIALECTS[kind] ?? 'openai', row, config = {}, secrets = {} } = options
  const [found] = modelTableSchema.parse({
    schema: 1,
    version: 'v',
    models: row ? [{ provider: kind, model, ...row }] : [],
  }).models
  const upstream: Upstream = {
    credential: openCredential(kind, { organizationId: 7, config, secrets }),
    edits: { ...EDITS, ...EDITS_OF[kind], ...options.edits },
    dialectOf: () => dialect,
    serves: () => true,
    request: () => ({ method: 'POST', origin: '', path: '', headers: [] }),
    dispatcher: { dispatch: () => undefined },
  }
  return {
    upstream,
    model,
    name: 'asked',
    alias: options.alias,
    ring: 1,
    priority: 0,
    weight: 1000,
    dialect,
    row: found,
  }
}

const ONCE: ReadonlySet<string> = new Set(['model', 'stream'])

export function requestOf(
  surface: Surface,
  body: object | string,
  more: Partial<InferenceRequest> = {},
): InferenceRequest {
  const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  const json: Record<string, unknown> = JSON.parse(bytes.toString())
  return {
    surface,
    body: bytes,
    members: readMembers(bytes, ONCE),
    model: String(json['model']),
    stream: json['stream'] === true,
    strict: false,
    organizationId: 7,
    maxOutputTokens: undefined,
    json: () => json,
    ...more,
  }
}

export const signatures = new Signatures(clock)
export const makeExchange = createExchanges({ clock, redactor, signatures })

export const HI = [{ role: 'user', content: 'hi' }]

/** A chat with a candidate, by the fields of its body. */
export const chat = (candidate: Candidate, body: object = {}, more: Partial<InferenceRequest> = {}): Exchange =>
  makeExchange(requestOf('chat', { model: 'asked', messages: HI, ...body }, more), candidate)

export const messages = (candidate: Candidate, body: object = {}, more: Partial<InferenceRequest> = {}): Exchange =>
  makeExchange(requestOf('messages', { model: 'asked', max_tokens: 100, messages: HI, ...body }, more), candidate)

/** The JSON of an answer, as its bytes come. */
export const bytesOf = (json: object): Buffer => Buffer.from(JSON.stringify(json))

export const read = (body: Buffer): Record<string, unknown> => JSON.parse(body.toString())

export const bodyOf = ({ body }: Pick<Exchange, 'body'>): Record<string, unknown> => read(body)

/** All that a client gets of a stream that comes in these pieces. */
export function streamOf(
  exchange: Exchange,
  pieces: readonly (string | Buffer)[],
): { text: string; steps: StreamStep[] } {
  const stream = exchange.stream()
  const steps = pieces.map((piece) => stream.read(Buffer.from(piece)))
  steps.push(stream.end())
  return { text: Buffer.concat(steps.flatMap(({ bytes }) => bytes)).toString(), steps }
}

export const eventsIn = (text: string): StreamEvent[] => new EventReader().read(Buffer.from(text))

export const chunksIn = (text: string): Record<string, unknown>[] =>
  eventsIn(text).flatMap(({ data }) => (data === '[DONE]' ? [] : [JSON.parse(data)]))

export const sse = (...events: (object | string)[]): string =>
  events.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`).join('')

/** Anthropic's events bear their type as name. */
export const named = (...events: { type: string }[]): string =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')

export function faultOf(work: () => unknown): UpstreamFault {
  try {
    work()
  } catch (error) {
    if (error instanceof UpstreamFault) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

/** A message of Amazon's event stream. */
export function awsMessage(headers: Readonly<Record<string, string>>, payload: object): Buffer {
  const head = Buffer.concat(
    Object.entries(headers).map(([name, value]) => {
      const length = Buffer.alloc(3, 7)
      length.writeUInt16BE(Buffer.byteLength(value), 1)
      return Buffer.concat([Buffer.from([name.length]), Buffer.from(name), length, Buffer.from(value)])
    }),
  )
  const body = Buffer.from(JSON.stringify(payload))
  const bytes = Buffer.alloc(12 + head.length + body.length + 4)
  bytes.writeUInt32BE(bytes.length, 0)
  bytes.writeUInt32BE(head.length, 4)
  bytes.writeUInt32BE(crc32(bytes.subarray(0, 8)), 8)
  head.copy(bytes, 12)
  body.copy(bytes, 12 + head.length)
  bytes.writeUInt32BE(crc32(bytes.subarray(0, bytes.length - 4)), bytes.length - 4)
  return bytes
}
