import { expect, test } from 'vitest'
import { md5 } from '../../src/base/hash.ts'
import { describeOnBoth } from '../support/memory-api.ts'
import {
  anId,
  aTime,
  expectError,
  expectInvalid,
  expectNoEntry,
  expectOk,
  ledgerOf,
  readPages,
} from '../support/expectations.ts'

const ABSENT = '01ARZ3NDEKTSV4RRFFQ69G5FAV'

describeOnBoth('memories', (api) => {
  const imprint = (ws: string, body: unknown) => api().call('POST', `/workspaces/${ws}/memories`, body)
  const lookup = async (ws: string, id: string) => expectOk(await api().call('GET', `/workspaces/${ws}/memories/${id}`))

  test('memory#12 imprint: 201 with all fields of 3.2; lookup gives content, MD5, Cells', async () => {
    const ws = await api().workspace()
    const collection = expectOk(await api().call('POST', `/workspaces/${ws}/collections`, { name: 'c' }), 201).id
    const paragraphs = ['first '.repeat(300), 'second '.repeat(200), 'third'].map((text) => text.trim())
    const content = paragraphs.join('\n\n')
    const reply = await imprint(ws, {
      content,
      collection_id: collection,
      tags: { kind: 'note', 'Ключ 🗝': '', toString: 'x' },
      chunker_id: 'default',
      chunker_config: { target_tokens: '512', whatever: 'x' },
    })
    const made = expectOk(reply, 201)
    expect(made).toEqual({
      memory_id: anId('mem'),
      watermark: anId('wmk'),
      content_md5: md5(content),
      cells_created: 2,
      recall_ready: true,
      written_by_agent_id: 'agent_test',
      ledger_id: anId('lg'),
      latency_ms: expect.any(Number),
    })
    expect(reply.headers.get('etag')).toBe(`"${made.watermark}"`)
    const memory = await lookup(ws, made.memory_id)
    expect(memory).toEqual({
      id: made.memory_id,
      workspace_id: ws,
      collection_id: collection,
      content,
      content_md5: md5(content),
      head_watermark: made.watermark,
      created_watermark: made.watermark,
      written_by_agent_id: 'agent_test',
      last_modified_by_agent_id: 'agent_test',
      tags: { kind: 'note', 'Ключ 🗝': '', toString: 'x' },
      chunker_id: 'default',
      chunker_config: { target_tokens: '512', whatever: 'x' },
      recall_ready: true,
      created_at: aTime,
      updated_at: aTime,
      cells: expect.any(Array),
    })
    expect(memory.updated_at).toBe(memory.created_at)
    expect(memory.cells).toHaveLength(2)
    for (const [seq, cell] of memory.cells.entries()) {
      expect(cell).toEqual({
        cell_id: anId('cell'),
        memory_id: made.memory_id,
        seq,
        text: cell.text,
        text_md5: md5(cell.text),
        written_by_agent_id: 'agent_test',
        embedding_model: 'hash:default',
        vector_key: cell.cell_id,
        created_at: aTime,
      })
      expect(content).toContain(cell.text)
    }
    expect(await ledgerOf(api(), ws, 'op=imprint')).toMatchObject([
      {
        ledger_id: made.ledger_id,
        target: made.memory_id,
        watermark_after: made.watermark,
        agent_id: 'agent_test',
        metadata: { cells_created: 2, cells_re_embedded: 2 },
      },
    ])
    const bare = await lookup(ws, await api().imprint(ws, 'x'))
    for (const key of ['collection_id', 'tags', 'chunker_id', 'chunker_config']) expect(bare).not.toHaveProperty(key)
    const emptied = await lookup(ws, await api().imprint(ws, 'x', { tags: {} }))
    expect(emptied).not.toHaveProperty('tags')
    const head = await api().call('HEAD', `/workspaces/${ws}/memories/${made.memory_id}`)
    expect(head).toMatchObject({ status: 200, body: undefined })
    expect(head.headers.get('etag')).toBe(`"${made.watermark}"`)
  })

  test('memory#13 imprint with missing or null content, unknown field: 400', async () => {
    const ws = await api().workspace()
    await api().imprint(ws, 'the only one')
    const tags = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 'v']))
    const bad: [field: string, fields: object][] = [
      ...[undefined, null, 1, true, ['x'], { text: 'x' }].map((content): [string, object] => ['content', { content }]),
      ['title', { title: 'x' }],
      ['Content', { Content: 'x' }],
      ['workspace_id', { workspace_id: ws }],
      ['tags', { tags: null }],
      ['tags', { tags: ['x'] }],
      ['tags', { tags: tags(257) }],
      ['tags.k', { tags: { k: 1 } }],
      ['tags.k', { tags: { k: null } }],
      ['tags.k', { tags: { k: 'x'.repeat(4097) } }],
      ['tags', { tags: { ['x'.repeat(129)]: 'v' } }],
      ['tags', { tags: { '': 'v' } }],
      ['chunker_id', { chunker_id: 'nope' }],
      ['chunker_id', { chunker_id: null }],
      ['chunker_config', { chunker_config: [] }],
      ['chunker_config.target_tokens', { chunker_config: { target_tokens: 512 } }],
      ['target_tokens', { chunker_config: { target_tokens: '0' } }],
      ['auto_link', { auto_link: null }],
      ['auto_link', { auto_link: 'false' }],
    ]
    await expectNoEntry(api(), ws, async () => {
      for (const [field, fields] of bad) {
        const reply = await imprint(ws, { content: 'x', ...fields })
        expectError(reply, 400, 'invalid_input', { field: expect.stringContaining(field) })
        expect(reply.body.message).toContain(field)
      }
    })
    expect(expectOk(await api().call('GET', `/workspaces/${ws}/memories`)).memories).toHaveLength(1)
    const largest = { ['😀'.repeat(128)]: '😀'.repeat(4096), ...tags(255) }
    expect((await lookup(ws, await api().imprint(ws, 'x', { tags: largest }))).tags).toEqual(largest)
  })

  test('memory#14 blank content: 201, 0 Cells, recall_ready false', async () => {
    const ws = await api().workspace()
    for (const content of ['', ' ', '\n\t \r\n', '\u00a0\u2003']) {
      const made = expectOk(await imprint(ws, { content }), 201)
      expect(made).toMatchObject({ content_md5: md5(content), cells_created: 0, recall_ready: false })
      expect(await lookup(ws, made.memory_id)).toMatchObject({ content, cells: [], recall_ready: false })
    }
    const recall = await api().call('POST', `/workspaces/${ws}/recall`, { query: 'x' })
    expect(expectOk(recall)).toMatchObject({ results: [], embedding_pending: false })
  })

  test('memory#15 unknown collection: 404; wrong prefix: 400', async () => {
    const ws = await api().workspace()
    const elsewhere = await api().workspace()
    const foreign = expectOk(await api().call('POST', `/workspaces/${elsewhere}/collections`, { name: 'c' }), 201).id
    await api().imprint(ws, 'registers the agent')
    await expectNoEntry(api(), ws, async () => {
      for (const id of [`coll_${ABSENT}`, foreign, 'coll_']) {
        const reply = await imprint(ws, { content: 'x', collection_id: id })
        expectError(reply, 404, 'not_found', { resource: 'collection', id })
      }
      for (const id of [`mem_${ABSENT}`, ABSENT, '', 'COLL_x', null, 1, [foreign]]) {
        expectInvalid(await imprint(ws, { content: 'x', collection_id: id }), 'collection_id')
      }
    })
  })

  test('memory#16 emoji, combining marks round-trip exactly; U+0000: 400', async () => {
    const ws = await api().workspace()
    const texts = [
      '👩‍👩‍👧‍👦 e\u0301 é \ufeff\u200b\u202e ﬀ \u0001\u007f\u0085',
      '\ufeffstarts with a mark',
      '\r\n mixed \r ends \n\n',
      '\uffff \u{10ffff} \ufffd',
      '{"not": "parsed"} \\u0000 $1 \' " %',
    ]
    for (const content of texts) {
      const made = expectOk(await imprint(ws, { content, tags: { [content]: content } }), 201)
      expect(made.content_md5).toBe(md5(content))
      expect(await lookup(ws, made.memory_id)).toMatchObject({ content, tags: { [content]: content } })
    }
    const odd = { ['__proto__']: 'a', constructor: 'b', hasOwnProperty: 'c' }
    const id = await api().imprint(ws, 'x', { tags: odd })
    expect(JSON.stringify((await lookup(ws, id)).tags)).toBe('{"__proto__":"a","constructor":"b","hasOwnProperty":"c"}')
    const filtered = await api().call('POST', `/workspaces/${ws}/recall`, undefined, {
      raw: '{"query": "x", "filters": {"tags": {"__proto__": "a"}}}',
    })
    expect(expectOk(filtered).results).toMatchObject([{ memory_id: id }])

    await expectNoEntry(api(), ws, async () => {
      for (const bad of ['\\u0000', '\\ud800', 'x\\udc00\\ud800', '\\uD83D x']) {
        const bodies = [
          ['content', `{"content": "${bad}"}`],
          ['tags.k', `{"content": "x", "tags": {"k": "${bad}"}}`],
          ['tags', `{"content": "x", "tags": {"${bad}": "v"}}`],
        ] as const
        for (const [field, raw] of bodies) {
          expectInvalid(await api().call('POST', `/workspaces/${ws}/memories`, undefined, { raw }), field)
        }
      }
    })
  })

  test('memory#17 list: newest first, default 50, collection filter, include_content=false', async () => {
    const ws = await api().workspace()
    const path = `/workspaces/${ws}/memories`
    const collection = expectOk(await api().call('POST', `/workspaces/${ws}/collections`, { name: 'c' }), 201).id
    const ids: string[] = []
    for (let i = 0; i < 60; i++) {
      ids.push(
        await api().imprint(
          ws,
          `number ${i}`,
          i % 10 === 0 ? { collection_id: collection, tags: { i: String(i) } } : {},
        ),
      )
    }
    const first = expectOk(await api().call('GET', path))
    expect(Object.keys(first)).toEqual(['memories', 'next_cursor'])
    expect(first.memories.map((memory: { id: string }) => memory.id)).toEqual(ids.toReversed().slice(0, 50))
    const { cells: _, ...newest } = await lookup(ws, ids[59] ?? '')
    expect(first.memories[0]).toEqual(newest)
    expect(expectOk(await api().call('GET', `${path}?limit=5000`)).memories).toHaveLength(60)
    expect(expectOk(await api().call('GET', `${path}?limit=-1`)).memories).toHaveLength(50)

    const filtered = await readPages(api(), `${path}?collection_id=${collection}`, 'memories', 4)
    expect(filtered.map((memory) => memory.tags.i)).toEqual(['50', '40', '30', '20', '10', '0'])
    for (const unknown of [`coll_${ABSENT}`, 'nope', '']) {
      expect(expectOk(await api().call('GET', `${path}?collection_id=${unknown}`))).toEqual({ memories: [] })
    }
    const { memories } = expectOk(await api().call('GET', `${path}?include_content=false&limit=1`))
    const { content: _content, ...withoutContent } = newest
    expect(memories).toEqual([withoutContent])
    expect(expectOk(await api().call('GET', `${path}?include_content=true&limit=1`)).memories).toEqual([newest])
    for (const value of ['yes', '', '1', 'False']) {
      expectInvalid(await api().call('GET', `${path}?include_content=${value}`), 'include_content')
    }
    expectInvalid(await api().call('GET', `${path}?collection_id=a&collection_id=b`), 'collection_id')
  })

  test('memory#18 rows inserted between pages never repeat or hide others', async () => {
    const ws = await api().workspace()
    const path = `/workspaces/${ws}/memories`
    const ids: string[] = []
    for (let i = 0; i < 12; i++) ids.push(await api().imprint(ws, `old ${i}`))
    const seen: string[] = []
    for (let cursor = ''; ;) {
      const page = expectOk(await api().call('GET', `${path}?limit=3${cursor}`))
      seen.push(...page.memories.map((memory: { id: string }) => memory.id))
      if (!page.next_cursor) break
      cursor = `&cursor=${page.next_cursor}`
      await Promise.all([api().imprint(ws, 'new'), api().imprint(ws, 'new')])
      // The row that the cursor names is gone, and so is one of an earlier page.
      await api().call('DELETE', `${path}/${seen.at(-1)}`)
      await api().call('DELETE', `${path}/${seen.at(-3)}`)
    }
    expect(seen).toEqual(ids.toReversed())
    const tampered = [['mem_x', 1], [1], ['1', 'mem_x'], [1, 'mem_x', 2], [1.5, 'mem_x'], [null, 'mem_x']]
    for (const key of tampered) {
      const cursor = Buffer.from(JSON.stringify(key)).toString('base64url')
      expectInvalid(await api().call('GET', `${path}?cursor=${cursor}`), 'cursor')
    }
  })

  test('memory#39 tag PUT, POST: 204, visible in lookup, list, filter; mark unchanged; tag_set', async () => {
    const ws = await api().workspace()
    const id = await api().imprint(ws, 'an otter', { tags: { kept: '1' } })
    const M = `/workspaces/${ws}/memories/${id}`
    const before = await lookup(ws, id)
    const keys = ['state', 'a/b', 'ü 😀', 'x@y:z', '100%', '..', '?#', '__proto__', 'k'.repeat(128)]
    for (const [i, key] of keys.entries()) {
      const method = i % 2 === 0 ? 'PUT' : 'POST'
      const path = `${M}/tags/${encodeURIComponent(key).replaceAll('.', '%252e').replaceAll('%252e', '%2e')}`
      if (key === '..') continue // a client's URL parser resolves it before it is sent
      expectOk(await api().call(method, path, { value: `value of ${key}` }), 204)
      const tags = (await lookup(ws, id)).tags
      expect(Object.entries(tags)).toContainEqual([key, `value of ${key}`])
      const filters = `{"query": "otter", "filters": {"tags": {${JSON.stringify(key)}: ${JSON.stringify(`value of ${key}`)}}}}`
      const recall = await api().call('POST', `/workspaces/${ws}/recall`, undefined, { raw: filters })
      expect(expectOk(recall).results).toMatchObject([{ memory_id: id }])
    }
    expectOk(await api().call('PUT', `${M}/tags/state`, { value: '' }), 204)
    const after = await lookup(ws, id)
    expect(after).toMatchObject({ ...before, tags: { kept: '1', state: '' } })
    expect(after.updated_at).toBe(before.updated_at)
    const { memories } = expectOk(await api().call('GET', `/workspaces/${ws}/memories`))
    expect(memories[0].tags).toEqual(after.tags)
    const entries = await ledgerOf(api(), ws, 'op=tag_set')
    expect(entries).toHaveLength(keys.length)
    expect(entries[0]).toMatchObject({ target: id, agent_id: 'agent_test', metadata: { key: 'state' } })
    expect(entries[0]).not.toHaveProperty('watermark_after')
    expect(expectOk(await api().call('GET', `${M}/watermarks`)).watermarks).toHaveLength(1)
    expectError(await api().call('PUT', `${M}/tags/x`, { value: 'x' }, { agent: null }), 400, 'missing_agent_id')
    expectError(
      await api().call('PUT', `/workspaces/${ws}/memories/mem_${ABSENT}/tags/x`, { value: 'x' }),
      404,
      'not_found',
      {
        resource: 'memory',
      },
    )
  })

  test('memory#40 tag body bad JSON or no value: 400; DELETE: 204, gone', async () => {
    const ws = await api().workspace()
    const id = await api().imprint(ws, 'x', { tags: { kind: 'note', other: 'y' } })
    const path = `/workspaces/${ws}/memories/${id}/tags`
    await expectNoEntry(api(), ws, async () => {
      for (const raw of [
        '{',
        '',
        'null',
        '[]',
        '"x"',
        '{"value": "x"} x',
        '{"value": "\\u0000"}',
        '{"value": "\\ud800"}',
      ]) {
        expectError(await api().call('PUT', `${path}/kind`, undefined, { raw }), 400, 'invalid_input')
      }
      for (const body of [{}, { value: null }, { value: 1 }, { value: ['x'] }, { value: 'x'.repeat(4097) }]) {
        expectInvalid(await api().call('POST', `${path}/kind`, body), 'value')
      }
      expectInvalid(await api().call('PUT', `${path}/kind`, { value: 'x', key: 'kind' }), 'key')
      expectError(await api().call('PUT', `${path}/${'k'.repeat(129)}`, { value: 'x' }), 400, 'invalid_input')
    })
    expect((await lookup(ws, id)).tags).toEqual({ kind: 'note', other: 'y' })

    expectOk(await api().call('DELETE', `${path}/kind`), 204)
    expect((await lookup(ws, id)).tags).toEqual({ other: 'y' })
    const recall = { query: 'x', filters: { tags: { kind: 'note' } } }
    expect(expectOk(await api().call('POST', `/workspaces/${ws}/recall`, recall)).results).toEqual([])
    expect(await ledgerOf(api(), ws, 'op=tag_delete')).toMatchObject([{ target: id, metadata: { key: 'kind' } }])
    await expectNoEntry(api(), ws, async () => {
      expectOk(await api().call('DELETE', `${path}/kind`), 204)
      expectError(await api().call('DELETE', `/workspaces/${ws}/memories/nope/tags/kind`), 404, 'not_found')
    })
    const full = await api().imprint(ws, 'x', {
      tags: Object.fromEntries(Array.from({ length: 256 }, (_, i) => [`k${i}`, 'v'])),
    })
    const more = await api().call('PUT', `/workspaces/${ws}/memories/${full}/tags/k256`, { value: 'v' })
    expectError(more, 400, 'invalid_input')
    expectOk(await api().call('PUT', `/workspaces/${ws}/memories/${full}/tags/k0`, { value: 'w' }), 204)
  })
})
