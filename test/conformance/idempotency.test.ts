import { describe, expect, test } from 'vitest'
import { describeOnBoth } from '../support/memory-api.ts'

const ABSENT = '00000000000000000000000000'

describeOnBoth('idempotency', (api) => {
  describe('memory#124', () => {
    const once = (key: string): { headers: Record<string, string> } => ({ headers: { 'Idempotency-Key': key } })

    test('memory#124 repeat same answer, one Memory; other body 409', async () => {
      const ws = await api().workspace()
      const memories = `/workspaces/${ws}/memories`
      const first = await api().call('POST', memories, { content: 'x', tags: { a: '1', b: '2' } }, once('key'))
      expect(first.headers.get('idempotent-replay')).toBeNull()
      const repeat = await api().call('POST', memories, { tags: { b: '2', a: '1' }, content: 'x' }, once('key'))
      expect(repeat).toMatchObject({ status: 201, body: first.body })
      expect(repeat.headers.get('idempotent-replay')).toBe('true')
      expect(repeat.headers.get('etag')).toBe(first.headers.get('etag'))
      for (const body of [{ content: 'y' }, { content: 'x' }, { nonsense: true }]) {
        expect(await api().call('POST', memories, body, once('key'))).toMatchObject({
          status: 409,
          body: { error_code: 'already_exists', details: { reason: 'idempotency_key_reused' } },
        })
      }
      // Another agent, route or workspace has keys of its own.
      const others = [
        await api().call('POST', memories, { content: 'x' }, { ...once('key'), agent: 'agent_other' }),
        await api().call('POST', `/workspaces/${await api().workspace()}/memories`, { content: 'x' }, once('key')),
        await api().call('POST', `/workspaces/${ws}/collections`, { name: 'x' }, once('key')),
      ]
      for (const other of others) expect([other.status, other.headers.get('idempotent-replay')]).toEqual([201, null])
      // Errors are not stored.
      const bad = await api().call('POST', memories, { content: 'x', collection_id: `coll_${ABSENT}` }, once('later'))
      const good = await api().call('POST', memories, { content: 'x' }, once('later'))
      expect([bad.status, good.status, good.headers.get('idempotent-replay')]).toEqual([404, 201, null])
      for (const key of ['', 'k'.repeat(201)]) {
        expect(await api().call('POST', memories, { content: 'x' }, once(key))).toMatchObject({
          status: 400,
          body: { details: { field: 'Idempotency-Key' } },
        })
      }
      expect((await api().call('POST', memories, { content: 'x' }, once('k'.repeat(200)))).status).toBe(201)
      expect((await api().call('GET', memories)).body.memories).toHaveLength(4)
      const { entries } = (await api().call('GET', `/workspaces/${ws}/ledger?op=imprint`)).body
      expect(entries).toHaveLength(4)
    })

    test('memory#124 parallel pair: one Memory', async () => {
      const ws = await api().workspace()
      const memories = `/workspaces/${ws}/memories`
      for (let round = 0; round < 5; round++) {
        const pair = await Promise.all(
          Array.from({ length: 4 }, () =>
            api().call('POST', memories, { content: `round ${round}` }, once(`pair ${round}`)),
          ),
        )
        expect(pair.map(({ status }) => status)).toEqual([201, 201, 201, 201])
        expect(new Set(pair.map(({ body }) => body.memory_id)).size).toBe(1)
        expect(pair.filter(({ headers }) => headers.get('idempotent-replay') === 'true')).toHaveLength(3)
      }
      expect((await api().call('GET', memories)).body.memories).toHaveLength(5)
      const clash = await Promise.all(
        ['a', 'b'].map((content) => api().call('POST', memories, { content }, once('clash'))),
      )
      expect(new Set(clash.map(({ status }) => status))).toEqual(new Set([201, 409]))
    })

    test('memory#124 :append, once, even when the head has moved', async () => {
      const ws = await api().workspace()
      const made = (await api().call('POST', `/workspaces/${ws}/memories`, { content: 'a' })).body
      const path = `/workspaces/${ws}/memories/${made.memory_id}`
      const append = (options: object) =>
        api().call('POST', `${path}:append`, { content: 'b', expected_watermark: made.watermark }, options)
      const pair = await Promise.all([append(once('once')), append(once('once')), append(once('once'))])
      expect(pair.map(({ status }) => status)).toEqual([200, 200, 200])
      expect(new Set(pair.map(({ body }) => body.watermark)).size).toBe(1)
      const later = await append(once('once'))
      expect(later).toMatchObject({ status: 200, body: pair[0]?.body })
      expect(later.headers.get('etag')).toBe(`"${pair[0]?.body.watermark}"`)
      expect((await append(once('twice'))).status).toBe(412)
      const encoded = await api().call(
        'POST',
        `${path}%3Aappend`,
        { content: 'b', expected_watermark: made.watermark },
        once('once'),
      )
      expect(encoded.headers.get('idempotent-replay')).toBe('true')
      expect((await api().call('GET', path)).body.content).toBe('ab')
      expect((await api().call('GET', `${path}/watermarks`)).body.watermarks).toHaveLength(2)
    })

    test('memory#124 every other create, and /edges/:batch', async () => {
      const ws = await api().workspace()
      const [a, b, c] = [await api().imprint(ws, 'a'), await api().imprint(ws, 'b'), await api().imprint(ws, 'c')]
      const W = `/workspaces/${ws}`
      const row = (target: string) => ({ source_memory_id: a, target_memory_id: target, edge_type: 'mentions' })
      const creates: [path: string, body: object, status: number][] = [
        ['/workspaces', { name: 'once' }, 201],
        [`${W}/collections`, { name: 'once' }, 201],
        [`${W}/recall/pins`, { query: 'once' }, 201],
        [`${W}/agents`, { agent_id: 'agent_once', identity_provider: 'opaque' }, 201],
        [`${W}/memories/${a}/edges`, { target_memory_id: b, edge_type: 'references' }, 201],
        [`${W}/edges/:batch`, { edges: [row(b), row(b), row(c), row(`mem_${ABSENT}`)] }, 200],
      ]
      const before = (await api().call('GET', '/workspaces?limit=200')).body.workspaces.length
      for (const [path, body, status] of creates) {
        const answers = await Promise.all([1, 2, 3].map(() => api().call('POST', path, body, once('create'))))
        for (const answer of answers) expect(answer).toMatchObject({ status, body: answers[0]?.body })
        expect(answers.filter(({ headers }) => headers.get('idempotent-replay') === 'true')).toHaveLength(2)
        const other = await api().call('POST', path, { ...body, name: 'other', label: 'other' }, once('create'))
        expect(other).toMatchObject({ status: 409, body: { details: { reason: 'idempotency_key_reused' } } })
      }
      expect((await api().call('GET', '/workspaces?limit=200')).body.workspaces).toHaveLength(before + 1)
      expect((await api().call('GET', `${W}/recall/pins`)).body.pins).toHaveLength(1)
      expect((await api().call('GET', `${W}/graph/stats`)).body.edge_count_by_type).toEqual({
        mentions: 2,
        references: 1,
      })
    })
  })
})
