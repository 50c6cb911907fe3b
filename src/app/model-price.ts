import type { Config } from '../config/load.ts'
import { NO_USAGE } from '../gateway/chat/events.ts'
import { loadModelTable } from '../gateway/cost/load.ts'
import { priceCall } from '../gateway/cost/pricing.ts'
import type { ModelHostOptions } from '../kernel/engine/model-host.ts'

/** Who sells models at an address. All others are looked up as OpenAI's, whose dialect they speak. */
const KINDS: ReadonlyMap<string, string> = new Map([
  ['api.anthropic.com', 'anthropic'],
  ['generativelanguage.googleapis.com', 'gemini'],
  ['api.groq.com', 'groq'],
  ['api.mistral.ai', 'mistral'],
])

/**
 * What the kernel's model costs, by the gateway's table and the overrides of its configuration. Contract: gateway.md 2.5
 * @throws ConfigError for a price file that cannot be used
 */
export function modelPrice(baseUrl: string, { gateway }: Config): NonNullable<ModelHostOptions['price']> {
  const table = loadModelTable({ prices: gateway.prices, priceFile: gateway.price_file })
  const kind = KINDS.get(new URL(baseUrl).hostname) ?? 'openai'
  return (model, { inputTokens: input, outputTokens: output, cachedTokens: cacheRead = 0 }) => {
    const nano = priceCall(table, kind, { upstream: model }, { ...NO_USAGE, input, output, cacheRead })
    return nano === undefined ? undefined : Math.ceil(Number(nano) / 1000)
  }
}
