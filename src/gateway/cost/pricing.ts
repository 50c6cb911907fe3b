import { NO_USAGE, type Usage } from '../chat/events.ts'
import { costOf } from './cost.ts'
import type { ModelRow, ModelTable } from './model-table.ts'

/** Kinds that sell another kind's models by its names and at its list prices. */
const SELLS: ReadonlyMap<string, string> = new Map([['azure-openai', 'openai']])

/** What an answer is capped at where neither the request nor the table says. Contract: gateway.md 7.3. */
const DEFAULT_OUTPUT_CAP = 4096

/** What a call's model may be known by. */
export interface CallNames {
  /** As the answer said. */
  readonly response?: string | undefined
  readonly upstream: string
  /** Azure's `base_model`. */
  readonly base?: string | undefined
}

/** The row that says what a model can do and costs: the first exact name, else the first pattern. Contract: gateway.md 2.5. */
export function rowOf(table: ModelTable, kind: string, { response, upstream, base }: CallNames): ModelRow | undefined {
  const own = table.find(kind, response, upstream, base)
  const sold = own ? undefined : SELLS.get(kind)
  return sold === undefined ? own : table.find(sold, response, upstream, base)
}

/** Nano-dollars of a call; undefined when a price that is needed is unknown. Contract: gateway.md 2.5. */
export function priceCall(table: ModelTable, kind: string, names: CallNames, usage: Usage): bigint | undefined {
  const row = rowOf(table, kind, names)
  return row && costOf(row, usage)
}

/**
 * Nano-dollars that a call may cost before it is made; undefined when its price is unknown. Contract: gateway.md 7.3.
 * @param outputCap tokens that each answer may have: the request's cap, 0 for embeddings; absent = the model's
 * @param answers how many are asked for
 */
export function estimateCeiling(
  row: ModelRow | undefined,
  inputTokens: number,
  outputCap = row?.max_output ?? DEFAULT_OUTPUT_CAP,
  answers = 1,
): bigint | undefined {
  return row && costOf(row, { ...NO_USAGE, input: inputTokens, output: outputCap * answers })
}
