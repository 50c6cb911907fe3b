import { beforeAll, expect, test } from 'vitest'
import { describeOnBoth } from '../support/memory-api.ts'
import { createClient, messagesOf, type ConsoleClient, type Fields } from './console-client.ts'

const lines = (records: readonly object[]): File =>
  new File([records.map((record) => JSON.stringify(record)).join('\n')], 'records.jsonl')

describeOnBoth('bulk', (api) => {
  let client: ConsoleClient
  beforeAll(() => {
    client = createClient(api().url)
  })
  const bulk = async (op: string, fields: Fields) => {
    const { status, text } = await client.post(`/ui/api/bulk/${op}`, fields)
    return { status, messages: messagesOf(text) }
  }
  const memories = async (ws: string) =>
    (await api().call('GET', `/workspaces/${ws}/memories?limit=1000`)).body.memories
  const contents = async (ws: string) =>
    (await memories(ws)).map(({ content }: { content: string }) => content).toSorted()

  test('memory#156 samples: as many as asked, the same for the same rand', async () => {
    const [a, b, c] = [await api().workspace(), await api().workspace(), await api().workspace()]
    const { messages } = await bulk('seed', { workspace_id: a, count: '12', rand: '7' })
    expect(messages).toHaveLength(13)
    expect(messages[4]).toEqual({ type: 'progress', done: 5, total: 12, failed: 0 })
    expect(messages.at(-1)).toEqual({ type: 'complete', succeeded: 12, failed: 0, skipped: 0 })
    await bulk('seed', { workspace_id: b, count: '12', rand: '7' })
    await bulk('seed', { workspace_id: c, count: '12', rand: '8' })
    expect(await contents(a)).toEqual(await contents(b))
    expect(await contents(a)).not.toEqual(await contents(c))
    expect((await bulk('seed', { workspace_id: a, count: '10001' })).status).toBe(400)
    expect((await bulk('seed', { workspace_id: a, count: '2', collection_id: 'coll_nope' })).status).toBe(404)
  })

  test('memory#156 samples, dump, import elsewhere: equal Memories, times and writers', async () => {
    const from = await api().workspace()
    const { call } = api()
    const collection = (await call('POST', `/workspaces/${from}/collections`, { name: 'Letters' })).body.id
    await bulk('seed', { workspace_id: from, count: '60', rand: '1', collection_id: collection })
    const edited = await api().imprint(from, 'now', { tags: { k: 'v "quoted"' }, chunker_id: 'no-chunk' })
    await call('POST', `/workspaces/${from}/memories/${edited}:append`, { content: ' and later\n' })

    const dump = await client.get(`/ui/api/bulk/dump?ws=${from}`)
    expect(dump.headers.get('content-disposition')).toBe(`attachment; filename="${from}-dump.jsonl"`)
    const records = dump.text.trim().split('\n')
    expect(records).toHaveLength(61)
    const one = await client.get(`/ui/api/bulk/dump?ws=${from}&collection=${collection}`)
    expect(one.text.trim().split('\n')).toHaveLength(60)

    // In the same store the ids are taken, so new ones are made.
    const to = await api().workspace()
    const { messages } = await bulk('import', { workspace_id: to, file: new File([dump.text], 'd.jsonl') })
    expect(messages.at(-1)).toEqual({ type: 'complete', succeeded: 61, failed: 0, skipped: 0 })
    const same = (list: Record<string, unknown>[]): string[] =>
      list
        .map(({ content, content_md5, tags, written_by_agent_id, chunker_id, created_at, updated_at, recall_ready }) =>
          JSON.stringify({
            content,
            content_md5,
            tags,
            written_by_agent_id,
            chunker_id,
            created_at,
            updated_at,
            recall_ready,
          }),
        )
        .toSorted()
    expect(same(await memories(to))).toEqual(same(await memories(from)))
    const [made] = (await call('GET', `/workspaces/${to}/collections`)).body.collections
    expect(made.name).toBe('Letters')

    // Where they are free they stay; each imprint is in the ledger as the console's.
    const moved = await api().workspace()
    const free = { ...JSON.parse(records[0] ?? ''), memory_id: 'mem_01ARZ3NDEKTSV4RRFFQ69G5FAV' }
    await bulk('import', { workspace_id: moved, records: JSON.stringify([free]) })
    const [kept] = await memories(moved)
    expect(kept).toMatchObject({ id: free.memory_id, created_at: free.created_at, updated_at: free.updated_at })
    const [entry] = (await call('GET', `/workspaces/${moved}/ledger?op=imprint`)).body.entries
    expect(entry).toMatchObject({ agent_id: 'ui-admin', user_id: 'console', target: free.memory_id })
    expect((await call('POST', `/workspaces/${moved}/recall`, { query: 'later' })).body.results).toHaveLength(1)
  })

  test('memory#157 import: skip, overwrite, error', async () => {
    const ws = await api().workspace()
    const id = await api().imprint(ws, 'as it was', { tags: { old: '1' } })
    const records = [
      { memory_id: id, content: 'as it is', tags: { new: '2' } },
      { content: 'something else' },
      { content: 'something else' },
    ]
    const skipped = await bulk('import', { workspace_id: ws, file: lines(records) })
    expect(skipped.messages.at(-1)).toEqual({ type: 'complete', succeeded: 1, failed: 0, skipped: 2 })
    const read = async () => (await api().call('GET', `/workspaces/${ws}/memories/${id}`)).body
    expect(await read()).toMatchObject({ content: 'as it was', tags: { old: '1' } })

    const stopped = await bulk('import', { workspace_id: ws, file: lines(records), conflict: 'error' })
    expect(stopped.messages).toEqual([{ type: 'error', message: expect.stringContaining(id) }])

    const over = await bulk('import', { workspace_id: ws, file: lines(records), conflict: 'overwrite' })
    expect(over.messages.at(-1)).toEqual({ type: 'complete', succeeded: 3, failed: 0, skipped: 0 })
    expect(await read()).toMatchObject({ content: 'as it is', tags: { new: '2' } })
    expect(await memories(ws)).toHaveLength(2)

    expect((await bulk('import', { workspace_id: ws, file: lines(records), conflict: 'maybe' })).status).toBe(400)
    expect((await bulk('import', { workspace_id: ws, records: 'not json' })).status).toBe(400)
    expect((await bulk('import', { workspace_id: ws })).status).toBe(400)
    const bad = await bulk('import', {
      workspace_id: ws,
      records: '[{"content": 3}, {"content": "x", "what": 1}, {"content": "fine"}]',
    })
    expect(bad.messages.at(-1)).toEqual({ type: 'complete', succeeded: 1, failed: 2, skipped: 0 })
  })

  test('memory#156 an id that is none of ours stays behind, and a new one is made', async () => {
    const ws = await api().workspace()
    const records = [{ memory_id: 'note-1', content: 'from elsewhere' }]
    const { messages } = await bulk('import', { workspace_id: ws, file: lines(records) })
    expect(messages.at(-1)).toMatchObject({ type: 'complete', succeeded: 1 })
    expect(await memories(ws)).toMatchObject([{ content: 'from elsewhere', id: expect.stringMatching(/^mem_\w{26}$/) }])
  })

  test('memory#157 what REST refuses is refused in an import and a replay, record by record', async () => {
    const ws = await api().workspace()
    const bad = [
      { content: 'a\0b' },
      { content: '\ud800' },
      { content: 'x', tags: { k: 'a\0' } },
      { content: 'x', agent_id: 'a\nb' },
      { content: 'x', agent_id: 'agent_system' },
      { content: 'x', collection_name: '' },
      { content: 'x', collection_name: 'n'.repeat(201) },
    ]
    const imported = await bulk('import', { workspace_id: ws, file: lines([...bad, { content: 'fine' }]) })
    expect(imported.messages.at(-1)).toEqual({ type: 'complete', succeeded: 1, failed: bad.length, skipped: 0 })
    const replayed = await bulk('replay', {
      workspace_id: ws,
      file: lines([
        { op: 'imprint', content: 'a\0b' },
        { op: 'append', memory_id: 'a\0', content: 'x' },
      ]),
    })
    expect(replayed.messages.at(-1)).toEqual({ type: 'complete', succeeded: 0, failed: 2, skipped: 0 })
    const latin1 = new File([new Uint8Array(Buffer.from('{"content": "caf\u00e9"}', 'latin1'))], 'd.jsonl')
    expect((await bulk('import', { workspace_id: ws, file: latin1 })).status).toBe(400)
    expect(await memories(ws)).toMatchObject([{ content: 'fine' }])
    expect((await api().call('GET', `/workspaces/${ws}/collections`)).body.collections).toEqual([])
  })

  test('memory#157 replay: every op, with recorded ids standing for new ones; other ops fail', async () => {
    const ws = await api().workspace()
    const records = [
      { op: 'imprint', memory_id: 'mem_A', content: 'one two', tags: { t: '1' } },
      { op: 'imprint', memory_id: 'mem_B', content: 'b' },
      { op: 'imprint', memory_id: 'mem_C', content: 'c' },
      { op: 'update', memory_id: 'mem_A', content: 'one two three', expected_watermark: 'wmk_of_then' },
      { op: 'patch', memory_id: 'mem_A', patch: [{ old_string: 'two', new_string: '2' }] },
      { op: 'append', memory_id: 'mem_A', content: ' four' },
      { op: 'link', source_memory_id: 'mem_A', target_memory_id: 'mem_B', edge_type: 'references', edge_id: 'edg_1' },
      { op: 'link', memory_id: 'mem_B', target_memory_id: 'mem_A', edge_type: 'mentions', edge_id: 'edg_2' },
      { op: 'unlink', edge_id: 'edg_2' },
      { op: 'tag_set', memory_id: 'mem_B', key: 'k', value: 'v' },
      { op: 'tag_set', memory_id: 'mem_B', key: 'gone', value: 'v' },
      { op: 'tag_delete', memory_id: 'mem_B', key: 'gone' },
      { op: 'forget', memory_id: 'mem_C' },
      { op: 'workspace_create', name: 'no' },
      { op: 'append', memory_id: 'mem_unknown', content: 'x' },
    ]
    const { messages } = await bulk('replay', { workspace_id: ws, file: lines(records) })
    expect(messages).toHaveLength(16)
    expect(messages.at(-1)).toEqual({ type: 'complete', succeeded: 13, failed: 2, skipped: 0 })
    expect(messages[13]).toMatchObject({ failed: 1, error: 'workspace_create cannot be replayed' })
    const [b, a] = await memories(ws)
    expect([a.content, a.tags, b.content, b.tags]).toEqual(['one 2 three four', { t: '1' }, 'b', { k: 'v' }])
    const { edges } = (await api().call('GET', `/workspaces/${ws}/memories/${a.id}/edges`)).body
    expect(edges).toMatchObject([{ source_memory_id: a.id, target_memory_id: b.id, edge_type: 'references' }])
  })

  test('memory#157 progress comes record by record, and who leaves ends the run', async () => {
    const ws = await api().workspace()
    const ending = new AbortController()
    const token = await client.token()
    const cookie = `mem_csrf=${client.cookies.get('mem_csrf')}`
    const body = new URLSearchParams({ csrf_token: token, workspace_id: ws, count: '10000' })
    const response = await fetch(`${api().url}/ui/api/bulk/seed`, {
      method: 'POST',
      body,
      headers: { cookie },
      signal: ending.signal,
    })
    const reader = response.body?.getReader()
    const first = await reader?.read()
    expect(new TextDecoder().decode(first?.value)).toMatch(/^data: {"type":"progress","done":1,/)
    ending.abort()
    // What begins later comes to its end, twice: by then a run that went on would have written as much again.
    const other = await api().workspace()
    await bulk('seed', { workspace_id: other, count: '200' })
    const written = (await memories(ws)).length
    await bulk('seed', { workspace_id: other, count: '200' })
    expect(await memories(ws)).toHaveLength(written)
    expect(written).toBeLessThan(1000)
  })

  test('what is wrong before a run is a 4xx', async () => {
    expect((await bulk('seed', { workspace_id: 'ws_nope' })).status).toBe(404)
    expect((await bulk('replay', {})).status).toBe(400)
    const workspace_id = await api().workspace()
    expect((await bulk('seed', { workspace_id, chunker_id: 'nope' })).status).toBe(400)
    expect((await client.get('/ui/api/bulk/dump?ws=ws_nope')).status).toBe(404)
    const unnamed = await client.get('/ui/api/bulk/dump')
    expect([unnamed.status, unnamed.text]).toEqual([400, expect.stringContaining('ws is missing')])
    const tooLarge = new File(['x'.repeat(8 * 1024 * 1024)], 'd.jsonl')
    expect((await bulk('import', { workspace_id: await api().workspace(), file: tooLarge })).status).toBe(400)
  })
})
