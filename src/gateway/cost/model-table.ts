import * as z from 'zod'
import { EFFORTS } from '../chat/form.ts'
import { KINDS } from '../model.ts'
import { parseUsd } from './money.ts'

/** The model table: what models can do, and what they cost. Contract: gateway.md 2.5. */

/** As it is written: below a millionth a number would come with an exponent. */
const decimal = (usd: number): string => (usd < 1e-6 && Number(usd.toFixed(9)) === usd ? usd.toFixed(9) : String(usd))

const price = z.union([z.string(), z.number().transform(decimal)]).transform((text, context) => {
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

/** A row that may stand over another of its name: what it leaves out of abilities is as there. */
export const overridingRow = z.strictObject({
  provider: z.string().refine((name) => KINDS.some((kind) => kind === name), `must be one of ${KINDS.join(', ')}`),
  model: z.string().regex(/^[^*]+\*?$|^\*$/, 'must be a name, or a pattern that ends with *'),
  usd_per_million: prices.exactOptional(),
  tiers: z.array(z.strictObject({ above_input_tokens: z.int().positive(), usd_per_million: prices })).exactOptional(),
  usd_per_request: price.exactOptional(),
  max_output: z.int().positive().exactOptional(),
  sampling: z.boolean().exactOptional(),
  reasoning: z.enum(['none', 'adaptive', 'budget', 'level', 'effort']).exactOptional(),
  efforts: z.array(z.enum(EFFORTS)).exactOptional(),
  max_tokens_field: z.enum(['max_tokens', 'max_completion_tokens']).exactOptional(),
  embedding_batch: z.int().positive().exactOptional(),
})

const row = overridingRow.extend({
  sampling: overridingRow.shape.sampling.unwrap().default(true),
  reasoning: overridingRow.shape.reasoning.unwrap().default('none'),
})

export const modelTableSchema = z.strictObject({ schema: z.literal(1), version: z.string(), models: z.array(row) })

export type ModelRow = z.output<typeof row>

interface ProviderRows {
  readonly exact: Map<string, ModelRow>
  /** The longest first. */
  readonly patterns: ModelRow[]
}

/** Rows by provider and model. */
export class ModelTable {
  readonly version: string
  readonly #layers: () => readonly (readonly ModelRow[])[]
  #read: Map<string, ProviderRows> | undefined

  /** @param layers those before win over those after; read when a row is first asked for. */
  constructor(version: string, layers: () => readonly (readonly ModelRow[])[]) {
    this.version = version
    this.#layers = layers
  }

  /** The row of the first name that has one of its own, else of the first that a pattern matches, the longest first. */
  find(provider: string, ...models: readonly (string | undefined)[]): ModelRow | undefined {
    const rows = this.#providers.get(provider)
    if (!rows) return undefined
    for (const model of models) {
      const exact = model === undefined ? undefined : rows.exact.get(model)
      if (exact) return exact
    }
    for (const model of models) {
      const matching = model === undefined ? undefined : rows.patterns.find((each) => matches(each, model))
      if (matching) return matching
    }
    return undefined
  }

  /** The names of a provider that have a row of their own. */
  names(provider: string): Iterable<string> {
    return this.#providers.get(provider)?.exact.keys() ?? []
  }

  /** Every row in force. */
  rows(): ModelRow[] {
    return [...this.#providers.values()].flatMap(({ exact, patterns }) => [...exact.values(), ...patterns])
  }

  get #providers(): Map<string, ProviderRows> {
    return (this.#read ??= byProvider(this.#layers().flat()))
  }
}

const emptyRows = (): ProviderRows => ({ exact: new Map(), patterns: [] })

function byProvider(rows: readonly ModelRow[]): Map<string, ProviderRows> {
  const providers = new Map<string, ProviderRows>()
  for (const found of rows) {
    const { exact, patterns } = providers.get(found.provider) ?? emptyRows()
    providers.set(found.provider, { exact, patterns })
    if (found.model.endsWith('*')) {
      if (!patterns.some(({ model }) => model === found.model)) patterns.push(found)
    } else if (!exact.has(found.model)) exact.set(found.model, found)
  }
  for (const { patterns } of providers.values()) patterns.sort((a, b) => b.model.length - a.model.length)
  return providers
}

const matches = (pattern: ModelRow, model: string): boolean => model.startsWith(pattern.model.slice(0, -1))
