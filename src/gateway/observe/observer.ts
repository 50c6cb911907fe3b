import type { PlaneObserver } from '../plane/parts.ts'
import type { GatewayMetrics } from './metrics.ts'
import { spansOf } from './spans.ts'
import type { SpanExporter } from './traces.ts'

/** Counts and traces the calls of the data plane; traces nothing without an exporter. Contract: gateway.md 11. */
export const createObserver = (metrics: GatewayMetrics, exporter: SpanExporter | undefined): PlaneObserver => ({
  finished: (call) => {
    metrics.finished(call.record)
    if (call.cache) metrics.cache(call.record.organization_id, call.cache)
    if (exporter?.hasRoom) exporter.add(spansOf(call))
  },
  rejected: (code) => metrics.rejected(code),
})
