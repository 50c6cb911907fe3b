import * as z from 'zod'
import { EFFORTS } from '../chat/form.ts'
import { parseUsd } from './money.ts'

/** The model table: what models can do, and what they cost. Contract: gateway.md 2.5. */

const price = z.union([z.string(), z.number().transform(String)]).transform((text, context) => {
  const nano = parseUsd(text)
  if (nano !== undefined) return nano
  context.addIssue({ code: 'custom', message: 'must be USD with nine decimals at most' })
  return z.NEVER
})

const prices = z.strictObject({
  input: price.optional(),
  output: price.optional(),
  cache_read: price.optional(),
  cache_write: price.optional(),
  cache_write_1h: price.optional(),
  reasoning: price.optional(),
})

/** Nano-dollars for a million tokens of each kind. */
export type Prices = z.output<typeof prices>

const row = z.strictObject({
  provider: z.string(),
  model: z.string().regex(/^[^*]+\*?$|^\*$/, 'must be a name, or a pattern that ends with *'),
  usd_per_million: prices.optional(),
  tiers: z.array(z.strictObject({ above_input_tokens: z.int().positive(), usd_per_million: prices })).optional(),
  usd_per_request: price.optional(),
  max_output: z.int().positive().optional(),
  sampling: z.boolean().default(true),
  reasoning: z.enum(['none', 'adaptive', 'budget', 'level', 'effort']).default('none'),
  efforts: z.array(z.enum(EFFORTS)).optional(),
  max_tokens_field: z.enum(['max_tokens', 'max_completion_tokens']).optional(),
  embedding_batch: z.int().positive().optional(),
})

export const modelTableSchema = z.strictObject({ schema: z.literal(1), version: z.string(), models: z.array(row) })

export type ModelRow = z.output<typeof row>

/** Rows by provider and model: the exact name first, then the longest pattern. */
export class ModelTable {
  readonly version: string
  readonly #exact = new Map<string, ModelRow>()
  readonly #patterns = new Map<string, ModelRow[]>()

  /** @param layers those before win over those after. */
  constructor(version: string, layers: readonly (readonly ModelRow[])[]) {
    this.version = version
    for (const found of layers.flat()) {
      const key = keyOf(found.provider, found.model)
      if (!found.model.endsWith('*')) {
        if (!this.#exact.has(key)) this.#exact.set(key, found)
        continue
      }
      const patterns = this.#patterns.get(found.provider) ?? []
      this.#patterns.set(found.provider, patterns)
      if (!patterns.some(({ model }) => model === found.model)) patterns.push(found)
    }
    for (const patterns of this.#patterns.values()) patterns.sort((a, b) => b.model.length - a.model.length)
  }

  find(provider: string, model: string): ModelRow | undefined {
    const exact = this.#exact.get(keyOf(provider, model))
    return exact ?? this.#patterns.get(provider)?.find((each) => model.startsWith(each.model.slice(0, -1)))
  }
}

const keyOf = (provider: string, model: string): string => `${provider}/${model}`
