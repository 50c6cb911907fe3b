import { parseUsd } from '../../../src/gateway/cost/money.ts'
import type { UsageRecord } from '../../../src/gateway/model.ts'

/** What the server says of all calls so far. */
export interface Books {
  readonly records: readonly UsageRecord[]
  /** Each the sum over all calls; they must be the same. */
  readonly views: Readonly<Record<'records' | 'analytics' | 'cost' | 'metrics', object>>
}

/** An admin of a server. */
export interface Reader {
  readonly url: string
  readonly token: string
}

const G = '/rest/v1/llm-gateway'

/** Reads records, analytics, cost and metrics. @param metricsToken where the process has counted every call itself */
export async function readBooks({ url, token }: Reader, metricsToken?: string): Promise<Books> {
  const get = async (path: string, bearer = token): Promise<string> => {
    const answer = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${bearer}` } })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${path}: ${text}`)
    return text
  }
  const lines = (await get(`${G}/usage/export?format=jsonl`)).split('\n').filter((line) => line !== '')
  const records = lines.map((line): UsageRecord => JSON.parse(line))
  const { totals } = JSON.parse(await get(`${G}/analytics?interval=day`))
  const { total_usd: total } = JSON.parse(await get(`${G}/cost`))
  const metrics = metricsToken === undefined ? '' : await get('/metrics/ai-gateway', metricsToken)
  const sum = (name: string, label = ''): number =>
    metrics
      .split('\n')
      .filter((line) => line.startsWith(`llm_gateway_${name}{`) && line.includes(label))
      .reduce((all, line) => all + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
  return {
    records,
    views: {
      records: sumsOf(records),
      analytics: {
        requests: totals.requests,
        input: totals.input_tokens,
        output: totals.output_tokens,
        cacheRead: totals.cache_read_tokens,
        nanoUsd: String(parseUsd(totals.cost_usd ?? '0')),
      },
      cost: { nanoUsd: String(parseUsd(total)) },
      metrics:
        metricsToken === undefined
          ? {}
          : {
              requests: sum('requests_total'),
              input: sum('tokens_total', 'kind="input"'),
              output: sum('tokens_total', 'kind="output"'),
              cacheRead: sum('tokens_total', 'kind="cache_read"'),
              nanoUsd: String(Math.round(sum('cost_usd_total') * 1e9)),
            },
    },
  }
}

function sumsOf(records: readonly UsageRecord[]): object {
  const sum = (field: 'input_tokens' | 'output_tokens' | 'cache_read_tokens'): number =>
    records.reduce((total, record) => total + (record[field] ?? 0), 0)
  return {
    requests: records.length,
    input: sum('input_tokens'),
    output: sum('output_tokens'),
    cacheRead: sum('cache_read_tokens'),
    nanoUsd: String(records.reduce((total, { cost_usd: usd }) => total + (parseUsd(usd ?? '0') ?? 0n), 0n)),
  }
}

/** Reads until there is a record of each of these requests, a few seconds at most. */
export async function readBooksOf(reader: Reader, count: number, metricsToken?: string): Promise<Books> {
  for (let tries = 0; ; tries++) {
    const books = await readBooks(reader, metricsToken)
    if (books.records.length >= count || tries === 40) return books
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
