import { renderMetrics, type MetricsFormat } from '../../base/metrics.ts'
import type { ModelTable } from '../cost/model-table.ts'
import type { UsageRecord } from '../model.ts'
import type { OrganizationState } from '../state/organization-state.ts'
import { figuresOf, type GatewayFigures } from './figures.ts'
import { ModelNames } from './model-names.ts'
import { createSeries, Kept, NONE, type RequestSeries } from './series.ts'

interface MetricsParts {
  stateOf: (organizationId: number) => OrganizationState | undefined
  /** The one in use now. */
  table: () => ModelTable
  figures: GatewayFigures
}

/** What a process counts. Contract: gateway.md 11. */
export interface GatewayMetrics {
  /** Counts a request that ended, with its attempts, tokens and cost; takes a microsecond. */
  finished(record: UsageRecord): void
  /** A request that leaves no record, as nobody is known to have made it. */
  rejected(code: string): void
  cache(organizationId: number, result: 'hit' | 'stored' | 'miss'): void
  /** The series of an organization, or all. */
  render(organizationId: number | undefined, format: MetricsFormat): Promise<string>
}

export function createGatewayMetrics({ stateOf, table, figures }: MetricsParts): GatewayMetrics {
  const names = new ModelNames(stateOf, table)
  const series = createSeries()
  const kept = new Kept(
    series,
    (organizationId, credentialId) => stateOf(organizationId)?.credentials.find(({ id }) => id === credentialId)?.kind,
    (record) => names.labelOf(record),
  )
  const metrics = [...Object.values(series), ...figuresOf(figures)]
  return {
    finished: (record) => {
      count(kept.ofRequest(record), record)
      countAttempts(kept, record)
      const { outcome, error_code: code = NONE, organization_id: organization } = record
      if (outcome === 'rejected') series.rejected.add({ organization: String(organization), code })
    },
    rejected: (code) => series.rejected.add({ organization: NONE, code }),
    cache: (organizationId, result) => series.cache.add({ organization: String(organizationId), result }),
    render: (organizationId, format) => {
      const own = String(organizationId)
      const shows = ({ organization }: { readonly organization?: string }): boolean => organization === own
      return renderMetrics(metrics, { format, ...(organizationId !== undefined && { shows }) })
    },
  }
}

const NANO = 1e9

function count({ requests, duration, overhead, costUnknown, served }: RequestSeries, record: UsageRecord): void {
  requests.value++
  duration.add(record.duration_ms / 1000)
  overhead.add(record.overhead_ms / 1000)
  if (record.cost_usd === null && record.cost_state !== 'disabled') costUnknown.value++
  if (!served) return
  if (record.attempts.length > 0) served.upstream.add(record.upstream_ms / 1000)
  if (record.first_token_ms !== undefined) served.firstToken.add(record.first_token_ms / 1000)
  served.input.value += record.input_tokens ?? 0
  served.cacheRead.value += record.cache_read_tokens ?? 0
  served.cacheWrite.value += (record.cache_write_tokens ?? 0) + (record.cache_write_1h_tokens ?? 0)
  served.output.value += record.output_tokens ?? 0
  served.reasoning.value += record.reasoning_tokens ?? 0
  if (record.cost_usd !== null) served.cost.value += Math.round(Number(record.cost_usd) * NANO)
}

/** A fallback is an attempt with another credential than the failed one before. */
function countAttempts(kept: Kept, { organization_id: organization, attempts }: UsageRecord): void {
  let before: (typeof attempts)[number] | undefined
  for (const attempt of attempts) {
    kept.ofAttempt(organization, attempt).value++
    if (before && before.credential_id !== attempt.credential_id) {
      kept.ofFallback(organization, before, attempt.credential_id).value++
    }
    before = attempt
  }
}
