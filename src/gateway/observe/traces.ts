import { backOff } from '../../base/back-off.ts'
import { errorText } from '../../base/errors.ts'
import { readHeaderPairs } from '../../base/header-pairs.ts'
import { redact } from '../../base/redact.ts'
import { version } from '../../base/version.ts'
import type { Span } from './spans.ts'

const MOST_SPANS = 2048
const BATCH = 512
const INTERVAL_MS = 5000
const TIMEOUT_MS = 10_000
const FIRST_WAIT_MS = 1000
const LONGEST_WAIT_MS = 60_000

interface ExporterOptions {
  /** `telemetry.otlp_endpoint`: `/v1/traces` comes behind it. */
  endpoint: string
  /** `telemetry.otlp_headers`: `name=value` pairs with commas between them, percent-encoded. */
  headers: string | undefined
  log: { warn(fields: object, message: string): void }
  /** How long spans are gathered (ms). */
  intervalMs?: number
  random?: () => number
}

/**
 * Sends spans to a collector, OTLP over HTTP in JSON: in batches, behind the requests. A collector that does not answer is
 * tried again with back-off; what finds no room meanwhile is dropped. Contract: gateway.md 11.
 */
export class SpanExporter {
  readonly #url: string
  readonly #headers: Headers
  readonly #log: ExporterOptions['log']
  readonly #intervalMs: number
  readonly #random: () => number
  readonly #spans: Span[] = []
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<void> | undefined
  #failures = 0
  #isClosed = false

  constructor({ endpoint, headers = '', log, intervalMs = INTERVAL_MS, random = Math.random }: ExporterOptions) {
    this.#url = `${endpoint.replace(/\/+$/, '')}/v1/traces`
    this.#headers = readHeaderPairs(headers) ?? new Headers()
    if (!this.#headers.has('content-type')) this.#headers.set('content-type', 'application/json')
    this.#log = log
    this.#intervalMs = intervalMs
    this.#random = random
  }

  get hasRoom(): boolean {
    return this.#spans.length < MOST_SPANS
  }

  add(spans: readonly Span[]): void {
    if (this.#isClosed) return
    this.#spans.push(...spans.slice(0, MOST_SPANS - this.#spans.length))
    if (this.#spans.length > 0 && this.#failures === 0)
      this.#schedule(this.#spans.length >= BATCH ? 0 : this.#intervalMs)
  }

  /** Sends what is there once more, and then nothing. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#sending
    while (this.#spans.length > 0 && this.#failures === 0) await this.#send()
  }

  #schedule(ms: number): void {
    if (this.#sending || this.#isClosed) return
    if (this.#timer && ms > 0) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#sending = this.#send().finally(() => {
        this.#sending = undefined
        if (this.#spans.length > 0) this.#schedule(this.#nextWait())
      })
    }, ms).unref()
  }

  #nextWait(): number {
    if (this.#failures > 0) return FIRST_WAIT_MS + backOff(this.#failures, FIRST_WAIT_MS, LONGEST_WAIT_MS, this.#random)
    return this.#spans.length >= BATCH ? 0 : this.#intervalMs
  }

  /** Never rejects: what a collector refuses for good is dropped, the rest kept for later. */
  async #send(): Promise<void> {
    const batch = this.#spans.slice(0, BATCH)
    if (batch.length === 0) return
    try {
      const answer = await fetch(this.#url, {
        method: 'POST',
        headers: this.#headers,
        body: encode(batch),
        redirect: 'error',
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })
      await answer.body?.cancel()
      if (isTemporary(answer.status)) throw new Error(`status ${answer.status}`)
      this.#spans.splice(0, batch.length)
      if (!answer.ok)
        this.#log.warn({ status: answer.status, spans: batch.length }, 'the trace collector refused spans')
      this.#failures = 0
    } catch (error) {
      this.#failures++
      if (this.#failures === 1) this.#log.warn({ reason: errorText(error) }, 'the trace collector cannot be reached')
    }
  }
}

const isTemporary = (status: number): boolean => status === 429 || (status >= 502 && status <= 504)

const encode = (spans: readonly Span[]): string =>
  JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: attributesOf({ 'service.name': 'mem', 'service.version': version }) },
        scopeSpans: [{ scope: { name: 'mem.gateway', version }, spans: spans.map(encodeSpan) }],
      },
    ],
  })

const SPAN_KIND_CLIENT = 3
const STATUS_ERROR = 2

const encodeSpan = ({ traceId, spanId, parentSpanId, name, startedAt, endedAt, attributes, isFault }: Span) => ({
  traceId,
  spanId,
  ...(parentSpanId !== undefined && { parentSpanId }),
  name: redact(name),
  kind: SPAN_KIND_CLIENT,
  startTimeUnixNano: nanoseconds(startedAt),
  endTimeUnixNano: nanoseconds(endedAt),
  attributes: attributesOf(attributes),
  status: isFault ? { code: STATUS_ERROR } : {},
})

const nanoseconds = (ms: number): string => `${Math.round(ms * 1000)}000`

type Value = NonNullable<Span['attributes'][string]>

const attributesOf = (attributes: Span['attributes']) =>
  Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: encodeValue(value, DOUBLES.has(key)) }],
  )

/** Of these also whole numbers are floating-point ones. */
const DOUBLES: ReadonlySet<string> = new Set(['gen_ai.request.temperature', 'gen_ai.response.time_to_first_chunk'])

function encodeValue(value: Value, isDouble = false): object {
  if (typeof value === 'string') return { stringValue: redact(value) }
  if (typeof value === 'boolean') return { boolValue: value }
  // A client may ask for half a token: collectors refuse the whole batch for an integer that is none.
  if (typeof value === 'number')
    return isDouble || !Number.isSafeInteger(value) ? { doubleValue: value } : { intValue: String(value) }
  return { arrayValue: { values: value.map((each) => encodeValue(each)) } }
}
