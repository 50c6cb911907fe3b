import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test, vi } from 'vitest'
import type { InferenceRequest } from '../../../src/gateway/exchange/exchange.ts'
import { createGatewayMetrics } from '../../../src/gateway/observe/metrics.ts'
import { createObserver } from '../../../src/gateway/observe/observer.ts'
import { spansOf } from '../../../src/gateway/observe/spans.ts'
import { SpanExporter } from '../../../src/gateway/observe/traces.ts'
import type { FinishedAttempt, FinishedCall } from '../../../src/gateway/plane/parts.ts'
import { readMembers } from '../../../src/gateway/relay/body.ts'
import type { Candidate } from '../../../src/gateway/routing/candidate.ts'
import { openCredential } from '../open-credential.ts'
import { modelTable, organizationState, usageRecord } from './samples.ts'

const MARKER = 'PROMPT-MARKER-93af'
const state = organizationState(1, { credentials: [openCredential('azure-openai', { id: 7 })] })

function requestOf(fields: object): InferenceRequest {
  const body = Buffer.from(JSON.stringify({ model: 'gpt-5', messages: [{ role: 'user', content: MARKER }], ...fields }))
  return {
    surface: 'chat',
    body,
    members: readMembers(body, new Set()),
    model: 'gpt-5',
    stream: true,
    strict: false,
    organizationId: 1,
    maxOutputTokens: undefined,
    json: () => JSON.parse(body.toString()),
  }
}

const candidate: Candidate = {
  upstream: {
    credential: openCredential('azure-openai', { id: 7 }),
    edits: { drop: [], rename: {}, streamUsage: true, modelInBody: true },
    dialectOf: () => 'openai',
    serves: () => true,
    request: () => {
      throw new Error('calls nobody')
    },
    dispatcher: { dispatch: () => undefined },
  },
  model: 'gpt-5-deployment',
  name: 'gpt-5',
  alias: undefined,
  ring: 1,
  priority: 0,
  weight: 1000,
  dialect: 'openai',
  row: undefined,
}

const attempt = (fields: Partial<FinishedAttempt> = {}): FinishedAttempt => ({
  candidate,
  number: 1,
  startedAt: 1_790_000_000_000.25,
  durationMs: 1500,
  firstChunkMs: 1000,
  class: 'ok',
  status: 200,
  origin: 'https://acme.openai.azure.com',
  facts: {
    usage: { input: 100, cacheRead: 40, cacheWrite: 10, cacheWrite1h: 5, output: 30, reasoning: 20 },
    finishReason: 'stop',
    responseModel: 'gpt-5-2026-08-07',
    responseId: 'answer-1',
    textBytes: 10,
  },
  ...fields,
})

const call = (fields: Partial<FinishedCall> = {}): FinishedCall => ({
  record: usageRecord(),
  caller: { state, userId: 1, key: undefined },
  request: requestOf({ max_tokens: 500, temperature: 1 }),
  attempts: [
    attempt({ class: 'rate', status: 429, facts: undefined, firstChunkMs: undefined }),
    attempt({ number: 2 }),
  ],
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  cache: undefined,
  ...fields,
})

interface Collector {
  readonly url: string
  readonly server: Server
  readonly received: { path: string; headers: Record<string, unknown>; text: string }[]
  /** What it answers with; the last one for ever. */
  readonly answers: number[]
}

const open: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

async function collector(...answers: number[]): Promise<Collector> {
  const received: Collector['received'] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      received.push({ path: request.url ?? '', headers: request.headers, text: Buffer.concat(chunks).toString() })
      response.writeHead((answers.length > 1 ? answers.shift() : answers[0]) ?? 200).end('{}')
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  open.push(() => new Promise((done) => (server.closeAllConnections(), server.close(done))))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, server, received, answers }
}

const log = () => ({ warn: vi.fn<(fields: object, message: string) => void>() })

const exporterTo = (endpoint: string, options: Partial<ConstructorParameters<typeof SpanExporter>[0]> = {}) => {
  const exporter = new SpanExporter({
    endpoint,
    headers: undefined,
    log: log(),
    intervalMs: 5,
    random: () => 0,
    ...options,
  })
  open.push(() => exporter.close())
  return exporter
}

test('gateway#103 one client span per attempt, in the trace of the client, with the attributes and no content', async () => {
  const { url, received } = await collector()
  const exporter = exporterTo(`${url}/`, { headers: 'authorization=Bearer%20x, x-tenant=a' })
  const metrics = createGatewayMetrics({
    stateOf: () => state,
    table: () => modelTable(),
    figures: {
      activeRequests: () => [],
      credentialStates: () => [],
      budgetsLeft: async () => [],
      metering: () => ({ queue: 0, dropped: 0, spillBytes: 0 }),
    },
  })
  createObserver(metrics, exporter).finished(call({ cache: 'miss' }))
  await expect.poll(() => received).toHaveLength(1)
  const [{ path, headers, text } = { path: '', headers: {}, text: '{}' }] = received
  expect(path).toBe('/v1/traces')
  expect(headers).toMatchObject({ 'content-type': 'application/json', authorization: 'Bearer x', 'x-tenant': 'a' })
  const [{ resource, scopeSpans }] = JSON.parse(text).resourceSpans
  expect(resource.attributes).toContainEqual({ key: 'service.name', value: { stringValue: 'mem' } })
  const [first, second] = scopeSpans[0].spans
  expect(first).toMatchObject({
    traceId: '0af7651916cd43dd8448eb211c80319c',
    parentSpanId: 'b7ad6b7169203331',
    spanId: expect.stringMatching(/^[\da-f]{16}$/),
    name: 'chat gpt-5-deployment',
    kind: 3,
    startTimeUnixNano: '1790000000000250000',
    endTimeUnixNano: '1790000001500250000',
    status: { code: 2 },
  })
  expect(first.attributes).toContainEqual({ key: 'error.type', value: { stringValue: 'rate' } })
  expect(second.spanId).not.toBe(first.spanId)
  expect(second.status).toEqual({})
  expect(
    Object.fromEntries(second.attributes.map(({ key, value }: { key: string; value: object }) => [key, value])),
  ).toEqual({
    'gen_ai.operation.name': { stringValue: 'chat' },
    'gen_ai.provider.name': { stringValue: 'azure.ai.openai' },
    'gen_ai.request.model': { stringValue: 'gpt-5-deployment' },
    'gen_ai.request.stream': { boolValue: true },
    'gen_ai.request.max_tokens': { intValue: '500' },
    'gen_ai.request.temperature': { doubleValue: 1 },
    'server.address': { stringValue: 'acme.openai.azure.com' },
    'server.port': { intValue: '443' },
    'mem.credential.id': { intValue: '7' },
    'mem.attempt': { intValue: '2' },
    'gen_ai.response.model': { stringValue: 'gpt-5-2026-08-07' },
    'gen_ai.response.id': { stringValue: 'answer-1' },
    'gen_ai.response.finish_reasons': { arrayValue: { values: [{ stringValue: 'stop' }] } },
    'gen_ai.response.time_to_first_chunk': { doubleValue: 1 },
    'gen_ai.usage.input_tokens': { intValue: '100' },
    'gen_ai.usage.output_tokens': { intValue: '30' },
    'gen_ai.usage.cache_read.input_tokens': { intValue: '40' },
    'gen_ai.usage.cache_creation.input_tokens': { intValue: '15' },
    'gen_ai.usage.reasoning.output_tokens': { intValue: '20' },
  })
  expect(text + (await metrics.render(undefined, 'prometheus')), 'gateway#99').not.toContain(MARKER)
  expect(await metrics.render(undefined, 'prometheus')).toContain(
    'llm_gateway_cache_total{organization="1",result="miss"} 1',
  )
})

test('gateway#103 a trace of its own without a parent or with a bad one; none where the client keeps none', () => {
  for (const traceparent of [
    undefined,
    'x',
    `00-${'0'.repeat(32)}-b7ad6b7169203331-01`,
    `ff-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
  ]) {
    const [one, two] = spansOf(call({ traceparent }))
    expect(one?.parentSpanId).toBeUndefined()
    expect(one?.traceId).toMatch(/^[\da-f]{32}$/)
    expect(two?.traceId).toBe(one?.traceId)
  }
  expect(spansOf(call({ traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00' }))).toEqual([])
  expect(spansOf(call({ attempts: [] }))).toEqual([])
})

test.each([1.5, 1e19, 1e21])('gateway#103 a cap of %d tokens goes out as no integer: none it is', async (cap) => {
  const { url, received } = await collector()
  exporterTo(url).add(spansOf(call({ request: requestOf({ max_tokens: cap }) })))
  await expect.poll(() => received).toHaveLength(1)
  const [{ attributes }] = JSON.parse(received[0]?.text ?? '').resourceSpans[0].scopeSpans[0].spans
  expect(attributes).toContainEqual({ key: 'gen_ai.request.max_tokens', value: { doubleValue: cap } })
})

test('a secret that stands in a model name does not leave', async () => {
  const { url, received } = await collector()
  const model = `sk-${'a'.repeat(40)}`
  exporterTo(url).add(spansOf(call({ attempts: [attempt({ candidate: { ...candidate, model } })] })))
  await expect.poll(() => received).toHaveLength(1)
  expect(received[0]?.text).not.toContain(model)
})

test('gateway#103 a dead collector is told of once, holds few spans, and gets them when it is back', async () => {
  const { url, received, answers } = await collector(503)
  const warned = log()
  const exporter = exporterTo(url, { log: warned })
  const spans = spansOf(call())
  for (let i = 0; i < 3000; i++) if (exporter.hasRoom) exporter.add(spans)
  expect(exporter.hasRoom).toBe(false)
  await expect.poll(() => received.length).toBeGreaterThanOrEqual(2)
  expect(warned.warn).toHaveBeenCalledTimes(1)
  answers[0] = 200
  await expect.poll(() => exporter.hasRoom).toBe(true)
  await exporter.close()
  const sent = received.slice(-4).map(({ text }) => JSON.parse(text).resourceSpans[0].scopeSpans[0].spans.length)
  expect(sent).toEqual([512, 512, 512, 512])
})

test('what a collector refuses for good is dropped', async () => {
  const { url, received } = await collector(400, 200)
  const exporter = exporterTo(url)
  exporter.add(spansOf(call()))
  await expect.poll(() => received).toHaveLength(1)
  exporter.add(spansOf(call()))
  await expect.poll(() => received).toHaveLength(2)
  expect(JSON.parse(received[1]?.text ?? '').resourceSpans[0].scopeSpans[0].spans).toHaveLength(2)
})

test('a collector that cannot be reached fails no caller, and close does not wait for it', async () => {
  const { url, server } = await collector()
  await new Promise((done) => server.close(done))
  const warned = log()
  const exporter = exporterTo(url, { log: warned })
  exporter.add(spansOf(call()))
  await expect.poll(() => warned.warn).toHaveBeenCalledOnce()
  await exporter.close()
  exporter.add(spansOf(call()))
})
