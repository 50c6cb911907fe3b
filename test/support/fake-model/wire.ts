/** What the fakes share: calls as they came, answers as they will go out. Nothing here knows the gateway. */

/** Of a fake; `cloud-roles` is what stands around a machine in a cloud: STS, container credentials, instance metadata. */
export type ProviderName =
  | 'openai'
  | 'anthropic'
  | 'gemini'
  | 'azure-openai'
  | 'bedrock'
  | 'vertex'
  | 'mistral'
  | 'groq'
  | 'ollama'
  | 'openai-compatible'
  | 'cloud-roles'

export type Json = Record<string, unknown>

/** Tokens as a provider counts them: `input` is the whole prompt, cached parts included, `output` includes reasoning. */
export interface Usage {
  input: number
  cacheRead: number
  cacheWrite: number
  cacheWrite1h: number
  output: number
  reasoning: number
}

export interface ReceivedCall {
  /** 1, 2, … since the start. */
  readonly number: number
  readonly method: string
  /** As it stood on the wire, query included. */
  readonly url: string
  readonly path: string
  readonly query: URLSearchParams
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Names and values in turn, as they came. */
  readonly rawHeaders: readonly string[]
  readonly raw: Buffer
  /** The JSON that came; undefined when it was none. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at what came, whatever it is
  readonly body: any
  /** Epoch ms. */
  readonly at: number
  /** What was answered so far. */
  status: number | undefined
  sentFrames: number
  sentBytes: number
  /** The answer went out whole. */
  isDone: boolean
  /** Epoch ms at which the client went away before the answer was whole. */
  closedByClientAt: number | undefined
}

/** A piece of an answer, one event of a stream. */
export interface Frame {
  readonly bytes: Buffer
  /** What this piece tells of the tokens of the whole call. */
  readonly usage?: Usage
  /** A start frame, a comment or usage is none. */
  readonly isContent?: boolean
}

export interface Reply {
  readonly status: number
  readonly contentType: string
  readonly headers?: Readonly<Record<string, string>>
  readonly frames: readonly Frame[]
}

/** An answer of one piece. */
export const jsonReply = (body: unknown, usage?: Usage, status = 200, headers: Record<string, string> = {}): Reply => ({
  status,
  contentType: 'application/json',
  headers,
  frames: [{ bytes: Buffer.from(JSON.stringify(body)), isContent: true, ...(usage && { usage }) }],
})

export const streamReply = (frames: readonly Frame[], contentType = 'text/event-stream; charset=utf-8'): Reply => ({
  status: 200,
  contentType,
  headers: { 'cache-control': 'no-cache' },
  frames,
})

/** An event of a stream. */
export function sse(data: unknown, { event, usage, isContent }: Omit<Frame, 'bytes'> & { event?: string } = {}): Frame {
  const text = typeof data === 'string' ? data : JSON.stringify(data)
  return {
    bytes: Buffer.from(`${event === undefined ? '' : `event: ${event}\n`}data: ${text}\n\n`),
    ...(usage && { usage }),
    ...(isContent !== undefined && { isContent }),
  }
}

export const FAILURES = [
  'invalid',
  'auth',
  'permission',
  'missing',
  'too_large',
  'rate',
  'quota',
  'server',
  'overloaded',
  'context',
  'filtered',
] as const
/** What a provider may refuse with; each has its own status and words for it. */
export type Failure = (typeof FAILURES)[number]

/** A refusal, before the provider has put it in its own words. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly failure: Failure
  readonly details: {
    readonly code?: string
    readonly type?: string
    readonly param?: string
    readonly status?: number
  }

  constructor(failure: Failure, message: string, details: Refusal['details'] = {}) {
    super(message)
    this.failure = failure
    this.details = details
  }
}

export const invalid = (message: string, details: Refusal['details'] = {}): Refusal =>
  new Refusal('invalid', message, details)

export const isJson = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
/** The value as an object, or an empty one. */
export const object = (value: unknown): Json => (isJson(value) ? value : {})
export const list = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.filter(isJson) : [])
export const string = (value: unknown): string => (typeof value === 'string' ? value : '')
export const without = (value: Json): Json =>
  Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined))

/** Names with white space between them. */
export const words = (text: string): string[] => text.trim().split(/\s+/)

/** The first name of the object that is not among the known ones. */
export const unknownName = (value: Json, known: readonly string[]): string | undefined =>
  Object.keys(value).find((name) => !known.includes(name))
