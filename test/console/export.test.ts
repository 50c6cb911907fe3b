import { expect, test } from 'vitest'
import { describeOnBoth } from '../support/memory-api.ts'
import { createClient } from './console-client.ts'

describeOnBoth('audit export', (api) => {
  const get = (path: string) => createClient(api().url).get(path)

  test('memory#158 20,000 entries are exported complete, in both formats', async () => {
    // On PostgreSQL, where making them takes half a minute, fewer: still several batches.
    const count = api().dialect === 'sqlite' ? 20_000 : 2500
    const ws = await api().workspace()
    const ids = await Promise.all(Array.from({ length: 150 }, (_, i) => api().imprint(ws, `note ${i}`)))
    const pairs = ids.flatMap((source) => ids.filter((target) => target !== source).map((target) => [source, target]))
    const edges = pairs.slice(0, count).map(([source_memory_id, target_memory_id]) => ({
      source_memory_id,
      target_memory_id,
      edge_type: 'mentions',
    }))
    for (let at = 0; at < edges.length; at += 1000) {
      await api().call('POST', `/workspaces/${ws}/edges/:batch`, { edges: edges.slice(at, at + 1000) })
    }

    const ndjson = await get(`/ui/audit/export?ws=${ws}`)
    expect(ndjson.headers.get('content-disposition')).toBe(`attachment; filename="${ws}-ledger.ndjson"`)
    const entries = ndjson.text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, i) => i + 1))
    expect(entries.filter(({ op }) => op === 'link')).toHaveLength(count)

    const csv = await get(`/ui/audit/export?ws=${ws}&format=csv&ops=link,imprint`)
    const [head, ...rows] = csv.text.trim().split('\r\n')
    expect(head).toBe('ledger_id,timestamp,op,target,agent_id,workspace_id,latency_ms,request_id')
    expect(new Set(rows.map((row) => row.split(',')[0])).size).toBe(count + 150)
    expect(rows).toHaveLength(count + 150)
  })

  test('memory#158 cells that a spreadsheet would compute are neutralised', async () => {
    const ws = await api().workspace()
    for (const agent of ['=1+1', '+1', '-1', '@sum', 'a,"b"'])
      await api().call('POST', `/workspaces/${ws}/memories`, { content: 'x' }, { agent })
    const { text } = await get(`/ui/audit/export?ws=${ws}&format=csv&ops=imprint`)
    for (const cell of [",'=1+1,", ",'+1,", ",'-1,", ",'@sum,", ',"a,""b""",']) expect(text).toContain(cell)
  })

  test('filters, all workspaces, and bad ones', async () => {
    const ws = await api().workspace()
    await api().imprint(ws, 'x')
    const byAgent = await get(`/ui/audit/export?ws=${ws}&agent=agent_test&ops=imprint`)
    expect(byAgent.text.trim().split('\n')).toHaveLength(1)
    expect((await get(`/ui/audit/export?ws=${ws}&until=2020-01-01`)).text).toBe('')
    const all = await get('/ui/audit/export?ops=workspace_create')
    expect(all.text).toContain(ws)
    expect((await get('/ui/audit/export?format=xml')).status).toBe(400)
    expect((await get('/ui/audit/export?ws=ws_nope')).status).toBe(404)
    expect((await get('/ui/audit/export?since=never')).status).toBe(400)
  })

  test('the activity stream tells what happens, escaped', async () => {
    const ending = new AbortController()
    const response = await fetch(`${api().url}/ui/events/activity`, { signal: ending.signal })
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    await reader?.read()
    const ws = await api().workspace()
    await api().call('POST', `/workspaces/${ws}/memories`, { content: 'x' }, { agent: '<b>' })
    let text = ''
    while (!text.includes('imprint')) {
      const chunk = await reader?.read()
      if (chunk === undefined || chunk.done) throw new Error(`the stream ended after: ${text}`)
      text += chunk.value
    }
    expect(text).toMatch(/^data: <li>/m)
    expect(text).toContain('&lt;b&gt;')
    ending.abort()
  })
})
