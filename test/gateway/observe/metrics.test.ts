import Fastify from 'fastify'
import { expect, test } from 'vitest'
import { sha256 } from '../../../src/base/hash.ts'
import { mountGatewayMetrics } from '../../../src/gateway/observe/metrics-route.ts'
import { createGatewayMetrics } from '../../../src/gateway/observe/metrics.ts'
import type { OrganizationState } from '../../../src/gateway/state/organization-state.ts'
import { openCredential } from '../open-credential.ts'
import { modelTable, organizationState, usageRecord } from './samples.ts'

const STATES = new Map<number, OrganizationState>([
  [
    1,
    organizationState(1, {
      credentials: [openCredential('openai', { id: 7 }), openCredential('anthropic', { id: 8 })],
    }),
  ],
  [
    2,
    organizationState(2, {
      credentials: [openCredential('ollama', { id: 9, modelMapping: new Map([['fast', 'qwen']]) })],
    }),
  ],
])

const create = (stateOf = (id: number) => STATES.get(id)) =>
  createGatewayMetrics({
    stateOf,
    table: () => modelTable(['openai', 'gpt-5'], ['openai', 'gpt-*']),
    figures: {
      activeRequests: () => [
        [1, 3],
        [2, 4],
      ],
      credentialStates: () => [{ organizationId: 1, credentialId: 7, state: 'cooling' }],
      budgetsLeft: async () => [{ organizationId: 2, scope: 'key', ratio: 0.25 }],
      metering: () => ({ queue: 5, dropped: 6, spillBytes: 7 }),
    },
  })

const linesOf = (text: string): string[] => text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))

test('gateway#102 every series of a call: counts, times, tokens, cost to the nano-dollar', async () => {
  const metrics = create()
  for (let i = 0; i < 3; i++) metrics.finished(usageRecord({ first_token_ms: 20 }))
  const text = await metrics.render(undefined, 'prometheus')
  const served = 'organization="1",provider="openai",model="gpt-5",credential="7"'
  const timed = 'organization="1",surface="chat",provider="openai",model="gpt-5"'
  for (const line of [
    `llm_gateway_requests_total{organization="1",surface="chat",provider="openai",model="gpt-5",credential="7",outcome="ok"} 3`,
    `llm_gateway_request_duration_seconds_bucket{${timed},le="0.5"} 0`,
    `llm_gateway_request_duration_seconds_bucket{${timed},le="1"} 3`,
    `llm_gateway_request_duration_seconds_count{${timed}} 3`,
    `llm_gateway_upstream_duration_seconds_sum{${timed}} 2.7`,
    `llm_gateway_first_token_seconds_bucket{${timed},le="0.025"} 3`,
    `llm_gateway_overhead_seconds_bucket{surface="chat",stream="false",le="0.0001"} 0`,
    `llm_gateway_overhead_seconds_bucket{surface="chat",stream="false",le="0.00025"} 3`,
    `llm_gateway_tokens_total{${served},kind="input"} 300`,
    `llm_gateway_tokens_total{${served},kind="cache_read"} 120`,
    `llm_gateway_tokens_total{${served},kind="cache_write"} 45`,
    `llm_gateway_tokens_total{${served},kind="output"} 90`,
    `llm_gateway_tokens_total{${served},kind="reasoning"} 60`,
    `llm_gateway_cost_usd_total{${served}} 0.000370371`,
    `llm_gateway_cost_unknown_total{${served}} 0`,
    'llm_gateway_attempts_total{organization="1",provider="openai",credential="7",class="ok"} 3',
    'llm_gateway_active_requests{organization="1"} 3',
    'llm_gateway_credential_state{organization="1",credential="7",state="cooling"} 1',
    'llm_gateway_budget_remaining_ratio{organization="2",scope="key"} 0.25',
    'llm_gateway_metering_queue 5',
    'llm_gateway_metering_dropped_total 6',
    'llm_gateway_metering_spill_bytes 7',
  ]) {
    expect(linesOf(text).map(rounded)).toContain(line)
  }
  expect(text).toMatch(/^llm_gateway_build_info\{version="[^"]+"\} 1$/m)
  expect(text).not.toContain('user')
})

const rounded = (line: string): string =>
  line.replace(/ (\d+\.\d{10,})$/, (_, number) => ` ${Number(Number(number).toPrecision(12))}`)

test('a fallback, an unknown cost, a refusal, the cache', async () => {
  const metrics = create()
  const at = { started_at: '2026-11-01T10:00:00.000Z', duration_ms: 5, model: 'gpt-5' }
  metrics.finished(
    usageRecord({
      attempts: [
        { ...at, credential_id: 7, class: 'connect' },
        { ...at, credential_id: 7, class: 'rate' },
        { ...at, credential_id: 8, class: 'ok' },
      ],
      cost_usd: null,
      cost_state: 'unknown_price',
    }),
  )
  metrics.finished(
    usageRecord({
      attempts: [],
      outcome: 'rejected',
      error_code: 'model_blocked',
      cost_usd: null,
      cost_state: 'no_usage',
    }),
  )
  metrics.rejected('invalid_api_key')
  metrics.cache(1, 'hit')
  const lines = linesOf(await metrics.render(undefined, 'prometheus'))
  expect(lines.filter((line) => /_(fallbacks|rejected|cache|cost_unknown|attempts)_total/.test(line))).toEqual([
    'llm_gateway_cost_unknown_total{organization="1",provider="openai",model="gpt-5",credential="7"} 2',
    'llm_gateway_attempts_total{organization="1",provider="openai",credential="7",class="connect"} 1',
    'llm_gateway_attempts_total{organization="1",provider="openai",credential="7",class="rate"} 1',
    'llm_gateway_attempts_total{organization="1",provider="anthropic",credential="8",class="ok"} 1',
    'llm_gateway_fallbacks_total{organization="1",from="7",to="8",class="rate"} 1',
    'llm_gateway_rejected_total{organization="1",code="model_blocked"} 1',
    'llm_gateway_rejected_total{organization="none",code="invalid_api_key"} 1',
    'llm_gateway_cache_total{organization="1",result="hit"} 1',
  ])
})

test('gateway#102 10,000 invented models are one series; names of the route and model table are told', async () => {
  const metrics = create()
  const rejected = usageRecord({ attempts: [], outcome: 'rejected', error_code: 'model_not_found' })
  const { credential_id: _c, provider: _p, model_used: _m, ...asked } = rejected
  for (let i = 0; i < 10_000; i++) metrics.finished({ ...asked, model_requested: `gpt-invented-${i}` })
  metrics.finished(usageRecord({ organization_id: 2, provider: 'ollama', model_used: 'qwen', model_requested: 'fast' }))
  metrics.finished({ ...asked, organization_id: 2, model_requested: 'fast' })
  const models = linesOf(await metrics.render(undefined, 'prometheus')).map((line) => /model="([^"]*)"/.exec(line)?.[1])
  expect(new Set(models.filter((model) => model !== undefined))).toEqual(new Set(['other', 'qwen', 'fast']))
})

test('a name that the configuration gets later is told from then on, other requests of the credential beside it', async () => {
  const mapped = organizationState(1, {
    credentials: [openCredential('openai', { id: 7, modelMapping: new Map([['late', 'later']]) })],
  })
  let state = organizationState(1, { credentials: [openCredential('openai', { id: 7 })] })
  const metrics = create(() => state)
  const late = { model_requested: 'late', model_used: 'later' }
  metrics.finished(usageRecord(late))
  metrics.finished(usageRecord(late))
  metrics.finished(usageRecord())
  state = mapped
  metrics.finished(usageRecord(late))
  metrics.finished(usageRecord({ ...late, outcome: 'error' }))
  metrics.finished(usageRecord(late))
  const lines = linesOf(await metrics.render(1, 'prometheus')).filter((line) => line.includes('requests_total'))
  expect(lines.map((line) => line.replace(/^.*model="([^"]*)".*outcome="([^"]*)"} /, '$1 $2 '))).toEqual([
    'other ok 2',
    'gpt-5 ok 1',
    'later ok 2',
    'later error 1',
  ])
})

test('gateway#102 no metric grows beyond 5,000 series, no organization beyond 200 models, and no count is lost', async () => {
  const models = Array.from({ length: 1000 }, (_, i) => `m${i}`)
  const modelMapping = new Map(models.map((model) => [model, model]))
  const metrics = create((id) =>
    organizationState(id, { credentials: [openCredential('openai', { id: 1, modelMapping })] }),
  )
  for (let organization = 1; organization <= 60; organization++) {
    for (const model of models) {
      metrics.finished(usageRecord({ organization_id: organization, credential_id: organization, model_used: model }))
    }
  }
  const lines = linesOf(await metrics.render(undefined, 'prometheus'))
  const perMetric = new Map<string, string[]>()
  for (const line of lines) {
    const name = line.replace(/(_bucket|_sum|_count)?(\{.*)? .*$/, '')
    perMetric.set(name, [...(perMetric.get(name) ?? []), line])
  }
  for (const [name, { length }] of perMetric) expect([name, length <= 5000]).toEqual([name, true])
  const sum = (name: string, only = ''): number => {
    const shown = (perMetric.get(name) ?? []).filter((line) => line.includes(only))
    return shown.reduce((all, line) => all + Number(line.split(' ').at(-1)), 0)
  }
  const requests = 'llm_gateway_requests_total'
  expect(sum(requests)).toBe(60_000)
  expect(sum(requests, 'organization="1"')).toBe(1000)
  expect(sum('llm_gateway_tokens_total')).toBe(60_000 * (100 + 40 + 15 + 30 + 20))
  const first = (await metrics.render(1, 'prometheus')).match(/requests_total\{.*model="/g) ?? []
  expect(first).toHaveLength(201)
})

test('gateway#102 a metrics token shows its organization, the operator sees all, nobody else anything', async () => {
  const metrics = create()
  metrics.finished(usageRecord())
  metrics.finished(usageRecord({ organization_id: 2 }))
  const app = Fastify()
  const own = `mmt_${'a'.repeat(43)}`
  mountGatewayMetrics(app, {
    metrics,
    organizationOf: (hash) => (hash === sha256(own) ? 2 : undefined),
    operatorToken: 'the-operator',
  })
  const get = (headers: Record<string, string>) => app.inject({ url: '/metrics/ai-gateway', headers })
  const seen = await get({ authorization: `Bearer ${own}` })
  expect(seen.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8')
  expect(linesOf(seen.body).length).toBeGreaterThan(10)
  expect(linesOf(seen.body).filter((line) => !line.includes('organization="2"'))).toEqual([])
  const all = await get({ authorization: 'Bearer the-operator' })
  expect(all.body).toContain('llm_gateway_requests_total{organization="1"')
  expect(all.body).toContain('llm_gateway_build_info')
  for (const headers of [
    {},
    { authorization: `Bearer mst_${'a'.repeat(43)}` },
    { authorization: `Basic ${own}` },
    { cookie: `session=${own}` },
    { 'x-api-key': own },
  ]) {
    const refused = await get(headers)
    expect(refused.statusCode).toBe(401)
    expect(refused.headers['www-authenticate']).toBe('Bearer')
    expect(refused.json().error.code).toBe('unauthorized')
  }
  const posted = await app.inject({ method: 'POST', url: '/metrics/ai-gateway' })
  expect([posted.statusCode, posted.headers.allow]).toEqual([405, 'GET, HEAD'])
  await app.close()
})

test('OpenMetrics: families without the suffix, an end', async () => {
  const metrics = create()
  metrics.finished(usageRecord())
  const app = Fastify()
  mountGatewayMetrics(app, { metrics, organizationOf: () => undefined, operatorToken: 'operator' })
  const headers = {
    authorization: 'Bearer operator',
    accept: 'application/openmetrics-text;version=1.0.0,text/plain;q=0.5',
  }
  const { body, headers: sent } = await app.inject({ url: '/metrics/ai-gateway', headers })
  expect(sent['content-type']).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8')
  expect(body).toContain('# TYPE llm_gateway_requests counter\nllm_gateway_requests_total{')
  expect(body).toContain('# TYPE llm_gateway_request_duration_seconds histogram\n')
  expect(body).toContain('organization="1"')
  expect(body.endsWith('\n# EOF\n')).toBe(true)
  await app.close()
})
