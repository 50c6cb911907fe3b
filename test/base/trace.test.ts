import { context, propagation, trace } from '@opentelemetry/api'
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-node'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startTracing } from '../../src/base/trace.ts'
import { startEmbeddingProvider, type EmbeddingProvider } from '../support/embedding-provider.ts'
import { startMemoryApi, type MemoryApi } from '../support/memory-api.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = '00f067aa0ba902b7'
const SECRET = 'rye bread and a secret lamp'

test('without an SDK nothing is traced', () => {
  expect(startTracing('0')).toBe(false)
})

describe('with the SDK of the operator', () => {
  const exporter = new InMemorySpanExporter()
  const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  let model: EmbeddingProvider
  let api: MemoryApi
  let ws: string
  beforeAll(async () => {
    provider.register()
    model = await startEmbeddingProvider()
    const env = { MEM_EMBEDDING_MODEL: 'openai:words-8', OPENAI_BASE_URL: model.url, OPENAI_API_KEY: 'sk-hidden' }
    api = await startMemoryApi({ dialect: 'sqlite', env })
    ws = await api.workspace()
  })
  afterAll(async () => {
    await api.stop()
    await model.stop()
    await provider.shutdown()
    for (const each of [trace, context, propagation]) each.disable()
  })
  beforeEach(() => exporter.reset())

  /** The spans so far, once that of the request has ended: the answer is here before. */
  async function spansOf(route: string): Promise<ReadableSpan[]> {
    for (;;) {
      const spans = exporter.getFinishedSpans()
      if (spans.some(({ name }) => name === route)) return spans
      await delay(1)
    }
  }

  const parentOf = (spans: readonly ReadableSpan[], span: ReadableSpan): string | undefined =>
    spans.find((each) => each.spanContext().spanId === span.parentSpanContext?.spanId)?.name

  const tree = (spans: readonly ReadableSpan[]): [name: string, parent: string | undefined][] =>
    spans
      .map((span): [string, string | undefined] => [span.name, parentOf(spans, span)])
      .sort(([a], [b]) => (a < b ? -1 : 1))

  test('an imprint is a request with its embedding and its mutation', async () => {
    await api.imprint(ws, SECRET)
    const route = 'POST /v1/workspaces/{ws}/memories'
    const spans = await spansOf(route)
    expect(tree(spans)).toEqual([
      [route, undefined],
      ['embed.documents', route],
      ['mutation', route],
    ])
    expect(spans.find(({ name }) => name === 'embed.documents')?.attributes).toEqual({
      'mem.embedding.model': 'openai:words-8',
      'mem.embedding.texts': 1,
    })
  })

  test('a recall is a request with its stages, in the trace that the caller began', async () => {
    const memory = await api.imprint(ws, SECRET)
    exporter.reset()
    const { status, headers } = await api.call(
      'POST',
      `/workspaces/${ws}/recall`,
      { query: SECRET, graph_expansion: { depth: 1 } },
      { headers: { traceparent: `00-${TRACE}-${PARENT}-01` } },
    )
    const route = 'POST /v1/workspaces/{ws}/recall'
    const spans = await spansOf(route)
    expect(tree(spans)).toEqual([
      [route, undefined],
      ['embed.query', route],
      ['recall.expand', route],
      ['recall.filter', route],
      ['recall.read', route],
      ['recall.search', route],
    ])
    expect(new Set(spans.map((span) => span.spanContext().traceId))).toEqual(new Set([TRACE]))
    const request = spans.find(({ name }) => name === route)
    expect(request?.parentSpanContext?.spanId).toBe(PARENT)
    expect([status, request?.attributes]).toEqual([
      200,
      {
        'http.request.method': 'POST',
        'http.route': '/v1/workspaces/{ws}/recall',
        'http.response.status_code': 200,
        'url.scheme': 'http',
        'network.protocol.version': '1.1',
        'mem.request_id': headers.get('x-request-id'),
      },
    ])
    const told = JSON.stringify(
      spans.map(({ name, attributes, events, status: ended }) => [name, attributes, events, ended]),
    )
    for (const hidden of [SECRET, 'sk-hidden', memory, ws]) expect(told).not.toContain(hidden)
  })

  test('a fault is one, a refusal is not; what no route answers has no route', async () => {
    await api.call('GET', `/workspaces/${ws}/memories/mem_none`)
    const [refused] = await spansOf('GET /v1/workspaces/{ws}/memories/{id}')
    expect([refused?.status.code, refused?.attributes['http.response.status_code']]).toEqual([0, 404])
    await api.call('GET', '//nothing/here')
    const lost = (await spansOf('GET')).find(({ name }) => name === 'GET')
    expect(lost?.attributes).not.toHaveProperty('http.route')
  })

  test('the embedding queue has traces of its own', async () => {
    let asked = 0
    model.behave = () => (asked++ === 0 ? 'fails' : 'works')
    await api.imprint(ws, 'later')
    const spans = await spansOf('embed_queue.jobs')
    const jobs = spans.filter(({ name }) => name === 'embed_queue.jobs')
    expect(jobs.map((span) => span.parentSpanContext)).toEqual(jobs.map(() => undefined))
    const last = jobs.at(-1)
    const inside = spans.filter((span) => span.spanContext().traceId === last?.spanContext().traceId)
    expect(tree(inside)).toEqual([
      ['embed.documents', 'embed_queue.jobs'],
      ['embed_queue.jobs', undefined],
      ['mutation', 'embed_queue.jobs'],
    ])
  })
})
