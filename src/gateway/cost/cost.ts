import type { Usage } from '../chat/events.ts'
import type { ModelRow, Prices } from './model-table.ts'
import { divideHalfEven } from './money.ts'

const MILLION = 1_000_000n

/**
 * Nano-dollars of a call, each token priced once; undefined when a price that is needed is unknown. Contract: gateway.md
 * 2.5, 5.5.
 */
export function costOf(
  { usd_per_million: base = {}, tiers = [], usd_per_request: perRequest }: ModelRow,
  usage: Usage,
): bigint | undefined {
  const tier = tiers
    .filter(({ above_input_tokens: above }) => usage.input > above)
    .reduce<(typeof tiers)[number] | undefined>(
      (best, each) => (best && best.above_input_tokens > each.above_input_tokens ? best : each),
      undefined,
    )
  let total = 0n
  for (const [tokens, price] of priced(usage, tier?.usd_per_million ?? base)) {
    if (tokens <= 0) continue
    if (price === undefined) return undefined
    total += BigInt(tokens) * price
  }
  return divideHalfEven(total, MILLION) + (perRequest ?? 0n)
}

/** Absent prices of caches and reasoning are those of input and output. */
function priced(usage: Usage, { input, output, cache_read, cache_write, cache_write_1h, reasoning }: Prices) {
  const { cacheRead, cacheWrite, cacheWrite1h } = usage
  return [
    [usage.input - cacheRead - cacheWrite - cacheWrite1h, input],
    [cacheRead, cache_read ?? input],
    [cacheWrite, cache_write ?? input],
    [cacheWrite1h, cache_write_1h ?? cache_write ?? input],
    [usage.reasoning, reasoning ?? output],
    [usage.output - usage.reasoning, output],
  ] as const
}
