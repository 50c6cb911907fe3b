import * as z from 'zod'
import { UnsayableError } from '../chat/form.ts'
import { parseJson, type Json } from '../chat/json.ts'
import { parseBody, present } from '../chat/parse.ts'
import { NO_USAGE } from '../chat/events.ts'
import type { Candidate } from '../routing/candidate.ts'
import { dialectOf, type EmbeddingDialect, type Embedded } from './embedding-dialects.ts'
import { estimateInputTokens } from './estimate.ts'
import type {
  AnswerFacts,
  AnswerStream,
  Exchange,
  InferenceRequest,
  JsonAnswer,
  Split,
  UpstreamFault,
} from './exchange.ts'
import { brokenFault, refusalFault, type FaultView } from './faults.ts'
import { toBase64, type Encoding } from './vectors.ts'

const requestSchema = z.object({
  model: z.unknown().optional(),
  input: z.union([z.string(), z.array(z.string()).min(1), z.array(z.int()).min(1), z.array(z.array(z.int())).min(1)]),
  dimensions: z.int().positive().nullish().transform(present),
  encoding_format: z.enum(['float', 'base64']).nullish().transform(present),
})

/** Embeddings of a provider with a form of its own, in as many calls as it takes. Contract: gateway.md 5.6. */
export class Embeddings implements Exchange {
  readonly isRelay = false
  readonly body: Buffer
  readonly split?: Split
  readonly dropped: readonly string[]
  readonly #request: InferenceRequest
  readonly #model: string
  readonly #counts: readonly number[]
  readonly #dialect: EmbeddingDialect
  readonly #encoding: Encoding
  readonly #view: FaultView

  /** @throws UnsayableError for tokens, which only OpenAI's dialect takes */
  constructor(request: InferenceRequest, candidate: Candidate, view: FaultView) {
    const dropped: string[] = []
    const asked = parseBody(requestSchema, request.json(), (field) => dropped.push(field))
    const texts = textsOf(asked.input)
    this.#dialect = dialectOf(candidate)
    const parts = inParts(texts, this.#dialect.batch)
    const [body = Buffer.alloc(0), ...others] = parts.map((part) =>
      Buffer.from(JSON.stringify(this.#dialect.write(part, asked.dimensions))),
    )
    this.body = body
    if (others.length > 0) {
      this.split = {
        bodies: [body, ...others],
        join: (answers) => this.#join(answers),
        facts: (answers) => this.#reported(answers),
      }
    }
    this.dropped = dropped
    this.#request = request
    this.#model = candidate.model
    this.#counts = parts.map(({ length }) => length)
    this.#encoding = asked.encoding_format ?? 'float'
    this.#view = view
  }

  answer(body: Buffer): JsonAnswer {
    return this.#join([body])
  }

  /** Embeddings do not stream. */
  stream(): AnswerStream {
    throw brokenFault('upstream_invalid_response', 'embeddings do not stream')
  }

  fault(status: number, headers: Readonly<Record<string, string>>, body: Buffer): UpstreamFault {
    return refusalFault(status, headers, body, this.#view)
  }

  #join(answers: readonly Buffer[]): JsonAnswer {
    const embedded = answers.map((answer, i) => this.#read(answer, this.#counts[i] ?? 0))
    const counts = embedded.map(({ tokens }) => tokens)
    const told = counts.every((count) => count !== undefined) ? sum(counts) : undefined
    const tokens = told ?? estimateInputTokens(this.#request)
    const data = embedded
      .flatMap(({ vectors }) => vectors)
      .map((vector, index) => ({
        object: 'embedding',
        index,
        embedding: this.#encoding === 'base64' ? toBase64(vector) : vector,
      }))
    const usage = { prompt_tokens: tokens, total_tokens: tokens }
    const body = Buffer.from(JSON.stringify({ object: 'list', data, model: this.#model, usage }))
    return { body, facts: factsOf(told) }
  }

  /** Of some of the answers: those that cannot be read, or report nothing, add nothing. */
  #reported(answers: readonly Buffer[]): AnswerFacts {
    const counts = answers.flatMap((answer) => this.#dialect.read(parse(answer))?.tokens ?? [])
    return factsOf(counts.length > 0 ? sum(counts) : undefined)
  }

  #read(answer: Buffer, count: number): Embedded {
    const embedded = this.#dialect.read(parse(answer))
    if (embedded?.vectors.length === count) return embedded
    const told = embedded && factsOf(embedded.tokens)
    throw brokenFault('upstream_invalid_response', 'the provider sent no vectors, or not one for each input', told)
  }
}

function textsOf(input: z.output<typeof requestSchema>['input']): string[] {
  if (typeof input === 'string') return [input]
  const texts = input.filter((each) => typeof each === 'string')
  if (texts.length === input.length) return texts
  throw new UnsayableError('unsupported_content', 'input', 'this model takes texts, not tokens')
}

function inParts<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size))
}

const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0)

const factsOf = (input: number | undefined): AnswerFacts => ({
  usage: input === undefined ? undefined : { ...NO_USAGE, input },
  finishReason: undefined,
  responseModel: undefined,
  responseId: undefined,
  textBytes: 0,
})

const parse = (answer: Buffer): Json => parseJson(answer.toString('utf8')) ?? {}
