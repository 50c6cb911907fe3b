/** A chat request as every dialect can say it: what readers give and writers take. Contract: gateway.md 5. */
export interface ChatRequest {
  readonly stream: boolean
  /** Whether an OpenAI client asked for the usage chunk. */
  readonly includeUsage: boolean
  readonly system: readonly TextPart[]
  /** User and assistant in turns, the user first where the client began so; each result right behind its call. */
  readonly turns: readonly Turn[]
  readonly tools: readonly Tool[]
  readonly choice?: ToolChoice
  readonly singleCall: boolean
  readonly maxTokens?: number
  readonly temperature?: number
  readonly topP?: number
  readonly topK?: number
  readonly stop: readonly string[]
  readonly format?: OutputFormat
  readonly effort?: Effort
  readonly user?: string
  readonly seed?: number
  readonly frequencyPenalty?: number
  readonly presencePenalty?: number
}

export interface Turn {
  readonly role: 'user' | 'assistant'
  readonly parts: readonly Part[]
}

export type Part = TextPart | ImagePart | DocumentPart | AudioPart | ReasoningPart | CallPart | ResultPart

/** Where the client wants the provider to cache what comes before. */
export interface CacheMark {
  readonly ttl?: '5m' | '1h'
}

interface Marked {
  readonly cache?: CacheMark
}

export interface TextPart extends Marked {
  readonly kind: 'text'
  readonly text: string
}

/** Bytes as base64 with their type, or an address. */
export type Media = { readonly mediaType: string; readonly data: string } | { readonly url: string }

export interface ImagePart extends Marked {
  readonly kind: 'image'
  readonly source: Media
}

/** A PDF. */
export interface DocumentPart extends Marked {
  readonly kind: 'document'
  readonly name: string
  readonly data: string
}

/** What a tool may answer with. */
export type Seen = TextPart | ImagePart | DocumentPart

export interface AudioPart {
  readonly kind: 'audio'
  readonly format: string
  readonly data: string
}

export const FAMILIES = ['claude', 'gemini', 'openai'] as const
/** Whose reasoning it is: it goes back to no other. */
export type Family = (typeof FAMILIES)[number]

export interface ReasoningPart {
  readonly kind: 'reasoning'
  readonly family: Family
  readonly text: string
  readonly signature?: string
  /** Reasoning that the provider sealed; there is no text then. */
  readonly sealed?: string
}

export interface CallPart extends Marked {
  readonly kind: 'call'
  readonly id: string
  readonly name: string
  /** A JSON object as text, as it came. */
  readonly arguments: string
  /** Gemini's signature of the thought that led to it. */
  readonly signature?: string
}

export interface ResultPart extends Marked {
  readonly kind: 'result'
  /** Of the call. */
  readonly id: string
  readonly name: string
  readonly content: readonly Seen[]
  readonly isError: boolean
}

export interface Tool extends Marked {
  readonly name: string
  readonly description?: string
  /** JSON Schema; travels unchanged. */
  readonly parameters: Readonly<Record<string, unknown>>
  readonly strict?: boolean
}

export type ToolChoice = 'auto' | 'none' | 'required' | { readonly name: string }

export type OutputFormat =
  | { readonly type: 'json' }
  | { readonly type: 'schema'; readonly name: string; readonly schema: unknown; readonly strict?: boolean }

export const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const
export type Effort = (typeof EFFORTS)[number]

/** A request that cannot be said in the target's dialect without changing its meaning: 400 with `param`. */
export class UnsayableError extends Error {
  override readonly name = 'UnsayableError'
  readonly code: 'invalid_value' | 'missing_required_parameter' | 'unsupported_parameter' | 'unsupported_content'
  readonly param: string
  /** What clients of Anthropic act upon. */
  readonly details: Readonly<Record<string, unknown>> | undefined

  constructor(
    code: UnsayableError['code'],
    param: string,
    message: string,
    details?: Readonly<Record<string, unknown>>,
  ) {
    super(message)
    this.code = code
    this.param = param
    this.details = details
  }
}

/** Whether the client wants anything of it cached. */
export const hasCacheMark = ({ system, turns, tools }: ChatRequest): boolean =>
  [...system, ...tools, ...turns.flatMap(({ parts }) => parts)].some((part) => 'cache' in part)

/** Fields that the target cannot carry, for `x-mem-dropped`. */
export type Drop = (field: string) => void

/** What a model is told that has no JSON mode. */
export const JSON_LINE = 'Answer with one JSON value and nothing else.'
