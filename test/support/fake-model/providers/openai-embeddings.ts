import { embed, toBase64, tokensOf } from '../speech.ts'
import { invalid, isJson, jsonReply, string, unknownName, type Reply } from '../wire.ts'

interface EmbeddingRules {
  readonly fields: readonly string[]
  /** The field with the asked length. */
  readonly dimensions: string
  readonly maxInputs: number
  readonly takesTokens: boolean
  /** Else it sends numbers whatever is asked. */
  readonly knowsBase64: boolean
}

export const EMBEDDING_RULES: EmbeddingRules = {
  fields: ['model', 'input', 'dimensions', 'encoding_format', 'user'],
  dimensions: 'dimensions',
  maxInputs: 2048,
  takesTokens: true,
  knowsBase64: true,
}

const DIMENSIONS = 16

/** Vectors: bags of words. @throws Refusal */
export function embeddingsReply(body: unknown, rules: EmbeddingRules = EMBEDDING_RULES): Reply {
  if (!isJson(body)) throw invalid('We could not parse the JSON body of your request.')
  const unknown = unknownName(body, rules.fields)
  if (unknown !== undefined) throw invalid(`Unrecognized request argument supplied: ${unknown}`)
  const texts = textsOf(body['input'], rules)
  if (texts.length === 0 || texts.length > rules.maxInputs || texts.includes('')) {
    throw invalid("'$.input' is invalid. Please check the API reference.", { param: 'input' })
  }
  const asked = body[rules.dimensions] ?? DIMENSIONS
  if (!Number.isInteger(asked) || Number(asked) < 1) throw invalid(`Invalid value for '${rules.dimensions}'.`)
  const isBase64 = rules.knowsBase64 && body['encoding_format'] === 'base64'
  const tokens = texts.reduce((sum, text) => sum + tokensOf(text), 0)
  const data = texts.map((text, index) => {
    const values = embed(text, Number(asked))
    return { object: 'embedding', index, embedding: isBase64 ? toBase64(values) : values }
  })
  return jsonReply(
    {
      object: 'list',
      data,
      model: string(body['model']),
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    },
    { input: tokens, output: 0, cacheRead: 0, cacheWrite: 0, cacheWrite1h: 0, reasoning: 0 },
  )
}

function textsOf(input: unknown, { takesTokens }: EmbeddingRules): string[] {
  if (typeof input === 'string') return [input]
  if (!Array.isArray(input)) return []
  if (input.every((each) => typeof each === 'string')) return input
  if (!takesTokens) throw invalid('Input should be a valid string', { param: 'input' })
  return input.every((each) => typeof each === 'number') ? [input.join(' ')] : input.map((each) => each.join(' '))
}
