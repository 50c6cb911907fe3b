import { expect, test } from 'vitest'
import { describeOnBoth, type Reply } from '../support/memory-api.ts'

describeOnBoth(
  'memory#131',
  (api) => {
    const exceeded = (reply: Reply | undefined, limit: string, value: number): void => {
      expect(reply).toMatchObject({
        status: 429,
        body: { error_code: 'quota_exceeded', message: expect.stringContaining(limit), details: { limit, value } },
      })
    }

    test('memory#131 limits.memories_per_workspace, live ones only, side by side too', async () => {
      const ws = await api().workspace()
      const path = `/workspaces/${ws}/memories`
      const burst = await Promise.all(
        Array.from({ length: 8 }, (_, i) => api().call('POST', path, { content: `m ${i}` })),
      )
      const [made, over] = [burst.filter(({ status }) => status === 201), burst.filter(({ status }) => status !== 201)]
      expect([made.length, over.length]).toEqual([3, 5])
      for (const reply of over) exceeded(reply, 'limits.memories_per_workspace', 3)
      expect((await api().call('GET', path)).body.memories).toHaveLength(3)
      expect((await api().call('GET', `/workspaces/${ws}/ledger?op=imprint`)).body.entries).toHaveLength(3)
      await api().call('DELETE', `${path}/${made[0]?.body.memory_id}`)
      expect((await api().call('POST', path, { content: 'again' })).status).toBe(201)
      exceeded(await api().call('POST', path, { content: 'and again' }), 'limits.memories_per_workspace', 3)
    })

    test('memory#131 limits.out_edges and limits.batch_edges', async () => {
      const ws = await api().workspace()
      const [a, b, c] = [await api().imprint(ws, 'a'), await api().imprint(ws, 'b'), await api().imprint(ws, 'c')]
      const row = (source: string, target: string, edge_type: string): object => ({
        source_memory_id: source,
        target_memory_id: target,
        edge_type,
      })
      const batch = (edges: object[]): Promise<Reply> => api().call('POST', `/workspaces/${ws}/edges/:batch`, { edges })
      const rows = [
        row(a, b, 'mentions'),
        row(a, c, 'mentions'),
        row(a, b, 'references'),
        row(b, c, 'mentions'),
        row(b, a, 'mentions'),
      ]
      exceeded(await batch([...rows, ...rows]), 'limits.batch_edges', 5)
      exceeded(await batch([...rows, row(c, a, 'mentions')]), 'limits.batch_edges', 5)
      expect((await api().call('GET', `/workspaces/${ws}/graph/stats`)).body.edge_count_by_type).toEqual({})
      const full = await batch(rows)
      expect(full).toMatchObject({ status: 200, body: { ok: 4, failed: 1 } })
      expect(full.body.results[2]).toEqual({
        index: 2,
        status: 'error',
        error: expect.stringContaining('limits.out_edges'),
        error_code: 'quota_exceeded',
      })
      const link = (edge_type: string): Promise<Reply> =>
        api().call('POST', `/workspaces/${ws}/memories/${a}/edges`, { target_memory_id: b, edge_type })
      exceeded(await link('supersedes'), 'limits.out_edges', 2)
      expect((await link('mentions')).body.error_code).toBe('already_exists')
      await api().call('DELETE', `/workspaces/${ws}/edges/${full.body.results[1].edge_id}`)
      const pair = await Promise.all([link('supersedes'), link('derived_from')])
      expect(new Set(pair.map(({ status }) => status))).toEqual(new Set([201, 429]))
    })

    test('memory#131 limits.workspaces', async () => {
      const create = (): Promise<Reply> => api().call('POST', '/workspaces', { name: 'x' })
      const { workspaces } = (await api().call('GET', '/workspaces')).body
      const burst = await Promise.all(Array.from({ length: 9 }, create))
      const made = burst.filter(({ status }) => status === 201)
      expect(made).toHaveLength(6 - workspaces.length)
      for (const reply of burst.filter(({ status }) => status !== 201)) exceeded(reply, 'limits.workspaces', 6)
      expect((await api().call('GET', '/workspaces')).body.workspaces).toHaveLength(6)
      await api().call('DELETE', `/workspaces/${made[0]?.body.id}`)
      expect((await create()).status).toBe(201)
      exceeded(await create(), 'limits.workspaces', 6)
    })
  },
  { file: 'limits: {memories_per_workspace: 3, out_edges: 2, batch_edges: 5, workspaces: 6}' },
)
