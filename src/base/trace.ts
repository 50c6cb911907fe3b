import { createRequire } from 'node:module'
import { join } from 'node:path'
import type * as Api from '@opentelemetry/api'

/** What a span tells beside its name and times: kinds, counts, states. No content, no secret, nothing that users name. */
export type Attributes = Readonly<Record<string, string | number | boolean>>

/** The span of a request, which ends when the answer has gone. */
export interface RequestSpan {
  /** Runs what belongs to the request: spans that begin in it become children. */
  within(work: () => void): void
  /** @param name by route: known only when the request is over */
  end(name: string, attributes: Attributes, isFault: boolean): void
}

let tracing: { api: typeof Api; tracer: Api.Tracer } | undefined

/** Where `@opentelemetry/api` 1.x keeps what an SDK registered, whichever copy of it did. */
const REGISTRY = Symbol.for('opentelemetry.js.api.1')

/**
 * Traces from now on, if an SDK of OpenTelemetry is in this process and its API can be found, beside us or from the working
 * directory. Without an SDK nothing is loaded, and a span costs one comparison.
 * @returns whether it traces
 */
export function startTracing(version: string): boolean {
  if (!(REGISTRY in globalThis)) return false
  const api = findApi()
  if (api) tracing = { api, tracer: api.trace.getTracer('mem', version) }
  return tracing !== undefined
}

function findApi(): typeof Api | undefined {
  for (const from of [import.meta.url, join(process.cwd(), 'package.json')]) {
    try {
      const found: typeof Api = createRequire(from)('@opentelemetry/api')
      return found
    } catch {
      // Not there.
    }
  }
  return undefined
}

/** Runs a piece of work as a child of the span around it. An error is told by its name, as its text may hold content. */
export function span<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T> {
  return tracing ? traced(name, { attributes }, work, tracing) : work()
}

/** The same for work that no request waits for: a trace of its own. */
export function rootSpan<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T> {
  return tracing ? traced(name, { attributes, root: true }, work, tracing) : work()
}

function traced<T>(
  name: string,
  options: Api.SpanOptions,
  work: () => Promise<T>,
  { api, tracer }: NonNullable<typeof tracing>,
): Promise<T> {
  return tracer.startActiveSpan(name, options, async (active) => {
    try {
      return await work()
    } catch (error) {
      active.setAttribute('error.type', error instanceof Error ? error.name : 'unknown')
      active.setStatus({ code: api.SpanStatusCode.ERROR })
      throw error
    } finally {
      active.end()
    }
  })
}

/** Begins the span of a request under the trace that its headers name (W3C `traceparent`); undefined without an SDK. */
export function requestSpan(headers: object, method: string, attributes: Attributes): RequestSpan | undefined {
  if (!tracing) return undefined
  const { context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } = tracing.api
  const parent = propagation.extract(ROOT_CONTEXT, headers)
  const active = tracing.tracer.startSpan(method, { kind: SpanKind.SERVER, attributes }, parent)
  const inside = trace.setSpan(parent, active)
  return {
    within: (work) => context.with(inside, work),
    end: (name, ended, isFault) => {
      active.updateName(name).setAttributes(ended)
      if (isFault) active.setStatus({ code: SpanStatusCode.ERROR })
      active.end()
    },
  }
}
