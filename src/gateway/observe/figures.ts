import { figure, type Metric } from '../../base/metrics.ts'
import { version } from '../../base/version.ts'
import type { HealthState } from '../model.ts'

const MOST = 5000

/** What is asked of others when a scrape comes. */
export interface GatewayFigures {
  activeRequests(): Iterable<readonly [organizationId: number, requests: number]>
  credentialStates(): Iterable<{ organizationId: number; credentialId: number; state: HealthState }>
  /** What is left, 0 to 1, of the budgets of a scope: of the one nearest to its end. */
  budgetsLeft(): Promise<Iterable<{ organizationId: number; scope: 'organization' | 'user' | 'key'; ratio: number }>>
  metering(): { queue: number; dropped: number; spillBytes: number }
}

export function figuresOf(figures: GatewayFigures): Metric[] {
  const one = (value: number) => [{ value }]
  return [
    figure('gauge', 'llm_gateway_active_requests', 'Requests under way.', () =>
      few(figures.activeRequests(), ([organization, value]) => ({
        labels: { organization: String(organization) },
        value,
      })),
    ),
    figure('gauge', 'llm_gateway_credential_state', 'The state that each credential is in.', () =>
      few(figures.credentialStates(), ({ organizationId, credentialId, state }) => ({
        labels: { organization: String(organizationId), credential: String(credentialId), state },
        value: 1,
      })),
    ),
    figure('gauge', 'llm_gateway_budget_remaining_ratio', 'What is left of budgets, the least of a scope.', async () =>
      few(await figures.budgetsLeft(), ({ organizationId, scope, ratio }) => ({
        labels: { organization: String(organizationId), scope },
        value: ratio,
      })),
    ),
    figure('gauge', 'llm_gateway_metering_queue', 'Usage records that wait to be written.', () =>
      one(figures.metering().queue),
    ),
    figure('counter', 'llm_gateway_metering_dropped_total', 'Usage records that found no room.', () =>
      one(figures.metering().dropped),
    ),
    figure('gauge', 'llm_gateway_metering_spill_bytes', 'Usage records in the spill file.', () =>
      one(figures.metering().spillBytes),
    ),
    figure('gauge', 'llm_gateway_build_info', 'What runs.', () => [{ labels: { version }, value: 1 }]),
  ]
}

function few<T, S>(all: Iterable<T>, sample: (each: T) => S): S[] {
  const samples: S[] = []
  for (const each of all) {
    if (samples.length >= MOST) break
    samples.push(sample(each))
  }
  return samples
}
