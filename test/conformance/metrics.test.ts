import { afterAll, beforeAll, expect, test } from 'vitest'
import { startMemoryApi, type MemoryApi } from '../support/memory-api.ts'

const HEADERS = { Authorization: 'Bearer k' }
let api: MemoryApi
beforeAll(async () => {
  api = await startMemoryApi({ dialect: 'sqlite', env: { MEM_API_KEY: 'k' } })
})
afterAll(() => api.stop())

/** One scrape, by series. */
async function scrape(): Promise<Map<string, number>> {
  const response = await fetch(`${api.url}/metrics`, { headers: HEADERS })
  expect([response.status, response.headers.get('content-type')]).toEqual([
    200,
    'text/plain; version=0.0.4; charset=utf-8',
  ])
  const text = await response.text()
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  expect(lines.filter((line) => !/^[a-z_]+(\{([a-z]+="[^"]*",?)+\})? -?[0-9.e+-]+$/.test(line))).toEqual([])
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]))
}

test('requests are counted by the pattern of their route, and timed', async () => {
  const call = (method: string, path: string, body?: unknown) => api.call(method, path, body, { headers: HEADERS })
  const { id } = (await call('POST', '/workspaces', { name: 'w' })).body
  const { memory_id } = (await call('POST', `/workspaces/${id}/memories`, { content: 'rye bread' })).body
  await call('POST', `/workspaces/${id}/memories/${memory_id}:append`, { content: '!' })
  await call('GET', `/workspaces/${id}/memories/mem_none`)
  await call('POST', `/workspaces/${id}/recall`, { query: 'rye' })
  await call('GET', `/nothing/${id}`)
  await api.call('GET', `/workspaces/${id}`)

  const series = await scrape()
  const requests = (method: string, route: string, status: number) =>
    series.get(`mem_http_requests_total{method="${method}",route="${route}",status="${status}"}`)
  expect(requests('POST', '/v1/workspaces/{ws}/memories', 201)).toBe(1)
  expect(requests('POST', '/v1/workspaces/{ws}/memories/{id}:append', 200)).toBe(1)
  expect(requests('GET', '/v1/workspaces/{ws}/memories/{id}', 404)).toBe(1)
  expect(requests('GET', 'unknown', 404)).toBe(1)
  expect(requests('GET', '/v1/workspaces/{ws}', 401)).toBe(1)
  const bucket = 'mem_http_request_duration_seconds_bucket{method="POST",route="/v1/workspaces/{ws}/recall",le="+Inf"}'
  expect(series.get(bucket)).toBe(1)
  expect([...series.keys()].filter((name) => name.includes(id) || name.includes(memory_id))).toEqual([])
  expect(series.get('mem_search_indexes{thread="main"}')).toBe(1)
  expect(series.get('mem_search_index_cells{thread="main"}')).toBe(1)
  expect(series.get('mem_search_index_cells{thread="worker"}')).toBe(0)
  expect(series.get('mem_embed_queue_jobs')).toBe(0)
  expect(series.get('mem_embed_queue_late_seconds')).toBe(0)
  expect(series.get('mem_outbox_rows{seam="ledger"}')).toBe(0)
  for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'nodejs_heap_used_bytes']) {
    expect([name, series.get(name)]).toEqual([name, expect.toSatisfy((value: number) => value > 0)])
  }
})

test('/metrics stands behind the guard, and has no other method', async () => {
  expect((await fetch(`${api.url}/metrics`)).status).toBe(401)
  expect((await fetch(`${api.url}/metrics`, { method: 'POST', headers: HEADERS })).status).toBe(405)
})
