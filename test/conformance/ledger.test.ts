import { expect, test } from 'vitest'
import { sha256 } from '../../src/base/hash.ts'
import { ledgerEntrySchema, type LedgerEntry } from '../../src/memory/model.ts'
import { adjustableClock, describeOnBoth } from '../support/memory-api.ts'
import { anId, aTime, expectInvalid, expectNoEntry, expectOk, ledgerOf, readPages } from '../support/expectations.ts'

const KEY = 'conformance-key'
const KEY_ID = sha256(KEY).slice(0, 8)
const clock = adjustableClock()
const authorized = { headers: { Authorization: `Bearer ${KEY}` } }

describeOnBoth(
  'ledger',
  (keyless) => {
    /** The server asks for a key, so that entries name it. */
    const api = () => {
      const server = keyless()
      const call: typeof server.call = (method, path, body, options = {}) =>
        server.call(method, path, body, { ...options, headers: { ...authorized.headers, ...options.headers } })
      const workspace = async (fields: object = {}): Promise<string> =>
        expectOk(await call('POST', '/workspaces', { name: 'x', ...fields }, { agent: null }), 201).id
      const imprint = async (ws: string, content: string, fields: object = {}): Promise<string> =>
        expectOk(await call('POST', `/workspaces/${ws}/memories`, { content, ...fields }), 201).memory_id
      return { ...server, call, workspace, imprint }
    }

    /** A workspace, and the answer to every kind of mutation of it, in the order of the ledger. */
    const oneOfEach = async () => {
      const ws = await api().workspace()
      const W = `/workspaces/${ws}`
      const trace: string[] = []
      const send = async (method: string, path: string, body?: object, agent: string | null = 'agent_a') => {
        trace.push(`trace-${trace.length}`)
        const headers = { 'X-Request-ID': String(trace.at(-1)), 'User-Agent': 'probe/1.0 (ü)' }
        const reply = await api().call(method, path, body, { agent, headers })
        expect(reply.status).toBeLessThan(300)
        return reply.body
      }
      const a = await send('POST', `${W}/memories`, { content: 'one', tags: { t: 'v' } })
      const b = await send('POST', `${W}/memories`, { content: 'two' })
      const M = `${W}/memories/${a.memory_id}`
      const updated = await send('PUT', M, { content: 'three', expected_watermark: a.watermark })
      const patch = [{ old_string: 'three', new_string: 'four' }]
      const patched = await send('PATCH', M, { patch, expected_watermark: updated.watermark })
      const appended = await send('POST', `${M}:append`, { content: '!' })
      await send('PUT', `${M}/tags/k`, { value: 'v' })
      await send('DELETE', `${M}/tags/k`)
      const kept = await send('POST', `${M}/edges`, { target_memory_id: b.memory_id, edge_type: 'references' })
      const cut = await send('POST', `${M}/edges`, { target_memory_id: b.memory_id, edge_type: 'mentions' })
      await send('DELETE', `${W}/edges/${cut.edge.edge_id}`)
      const collection = await send('POST', `${W}/collections`, { name: 'c' }, null)
      await send('DELETE', `${W}/collections/${collection.id}`, undefined, null)
      const pin = await send('POST', `${W}/recall/pins`, { query: 'q' })
      await send('DELETE', `${W}/recall/pins/${pin.pin_id}`)
      await send('POST', `${W}/agents`, { agent_id: 'agent_b', identity_provider: 'opaque' }, null)
      await send('DELETE', `${W}/agents/agent_b`)
      await send('PUT', W, { name: 'y' })
      const forgotten = await send('DELETE', M)
      return { ws, W, a, b, updated, patched, appended, kept, cut, collection, pin, forgotten, trace }
    }

    test('memory#108 each mutation: one entry of its op with request id, ip, user agent', async () => {
      const { ws, a, b, updated, patched, appended, kept, cut, collection, pin, forgotten, trace } = await oneOfEach()
      const entries = await ledgerOf(api(), ws)
      const described = { source_memory_id: a.memory_id, target_memory_id: b.memory_id }
      const by = (n: number, entry: object): object => ({ request_id: trace[n], agent_id: 'agent_a', ...entry })
      expect(entries.map(({ metadata: _, ...entry }) => entry)).toMatchObject([
        { op: 'workspace_create', target: ws, agent_id: 'agent_system' },
        by(0, { op: 'agent_register', target: 'agent_a' }),
        by(0, { op: 'imprint', target: a.memory_id, ledger_id: a.ledger_id, watermark_after: a.watermark }),
        by(1, { op: 'imprint', target: b.memory_id, ledger_id: b.ledger_id, watermark_after: b.watermark }),
        by(2, {
          op: 'update',
          ledger_id: updated.ledger_id,
          watermark_before: a.watermark,
          watermark_after: updated.watermark,
        }),
        by(3, { op: 'patch', watermark_before: updated.watermark, watermark_after: patched.watermark }),
        by(4, { op: 'append', watermark_before: patched.watermark, watermark_after: appended.watermark }),
        by(5, { op: 'tag_set', target: a.memory_id }),
        by(6, { op: 'tag_delete', target: a.memory_id }),
        by(7, { op: 'link', target: kept.edge.edge_id, ledger_id: kept.ledger_id }),
        by(8, { op: 'link', target: cut.edge.edge_id }),
        by(9, { op: 'unlink', target: cut.edge.edge_id }),
        by(10, { op: 'collection_create', target: collection.id, agent_id: 'agent_system' }),
        by(11, { op: 'collection_delete', target: collection.id, agent_id: 'agent_system' }),
        by(12, { op: 'pin_create', target: pin.pin_id }),
        by(13, { op: 'pin_delete', target: pin.pin_id }),
        by(14, { op: 'agent_register', target: 'agent_b', agent_id: 'agent_system' }),
        by(15, { op: 'agent_deactivate', target: 'agent_b' }),
        by(16, { op: 'workspace_update', target: ws }),
        by(17, { op: 'edge_cascade_forget', target: kept.edge.edge_id }),
        by(17, {
          op: 'forget',
          target: a.memory_id,
          ledger_id: forgotten.ledger_id,
          watermark_before: appended.watermark,
          watermark_after: forgotten.watermark,
        }),
      ])
      const metadata = (op: string): unknown[] =>
        entries.filter((entry) => entry.op === op).map((entry) => entry.metadata)
      expect(metadata('imprint')[0]).toEqual({ cells_created: 1, cells_re_embedded: 1 })
      expect(metadata('update')).toEqual([{ cells_re_embedded: 1, cells_skipped: 0 }])
      expect(metadata('patch')).toEqual([
        { patches_applied: 1, cells_re_embedded: 1, cells_skipped: 0, cells_added: 0, cells_removed: 0 },
      ])
      expect(metadata('append')).toEqual([{ cells_added: 1, cells_skipped: 0 }])
      expect(metadata('tag_set')).toEqual([{ key: 'k' }])
      expect(metadata('tag_delete')).toEqual([{ key: 'k' }])
      expect(metadata('link')[0]).toEqual({ edge_type: 'references', ...described })
      expect(metadata('unlink')).toEqual([{ edge_type: 'mentions', ...described }])
      expect(metadata('edge_cascade_forget')).toEqual([{ edge_type: 'references', memory_id: a.memory_id }])
      expect(metadata('forget')).toEqual([{ cascaded_edges: 1 }])
      expect(metadata('agent_register')).toEqual([{ auto: true }, { auto: false }])

      let prev = '0'.repeat(64)
      for (const [i, entry] of entries.entries()) {
        expect(ledgerEntrySchema.parse(entry)).toEqual(entry)
        expect(entry).toMatchObject({
          ledger_id: anId('lg'),
          workspace_id: ws,
          seq: i + 1,
          ts: aTime,
          api_key_id: KEY_ID,
          ip: '127.0.0.1',
          user_agent: i === 0 ? 'node' : 'probe/1.0 (ü)',
          prev_hash: prev,
          entry_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
        })
        expect(entry.latency_ms).toBeGreaterThan(0)
        for (const absent of ['user_id', 'redact_audit', 'redacted', 'redacted_fields'])
          expect(entry).not.toHaveProperty(absent)
        prev = entry.entry_hash
      }
    })

    test('memory#109 failed writes, reads, no-change patch: no entry', async () => {
      const { ws, W, b } = await oneOfEach()
      const M = `${W}/memories/${b.memory_id}`
      const reads = ['', '/collections', '/memories', '/agents', '/ledger', '/recall/pins', '/graph/stats']
      const calls: [method: string, path: string, body?: object][] = [
        ...reads.map((path): [string, string] => ['GET', W + path]),
        ['GET', M],
        ['GET', `${M}@${b.watermark}`],
        ['GET', `${M}/watermarks`],
        ['GET', `${M}/edges`],
        ['POST', `${W}/recall`, { query: 'two' }],
        ['POST', `${W}/graph/neighbors`, { memory_id: b.memory_id }],
        ['POST', `${W}/graph/traverse`, { seed_memory_id: b.memory_id }],
        ['POST', `${W}/edges/:batch`, { edges: [] }],
        ['PATCH', M, { patch: [], expected_watermark: b.watermark }],
        ['DELETE', `${M}/tags/absent`],
        ['PUT', M, { content: 'x', expected_watermark: 'old' }],
        ['PUT', M, { content: 1 }],
        ['PATCH', M, { patch: [{ old_string: 'zzz', new_string: '' }], expected_watermark: b.watermark }],
        ['POST', `${W}/memories`, {}],
        ['POST', `${W}/collections`, { name: '' }],
        ['DELETE', `${W}/memories/nope`],
        ['DELETE', W],
        ['PUT', W, {}],
        ['PUT', `${W}/ledger`],
      ]
      await expectNoEntry(api(), ws, async () => {
        for (const [method, path, body] of calls) await api().call(method, path, body, { agent: 'agent_a' })
      })
    })

    test('memory#110 each filter alone and combined; bad time or op 400', async () => {
      const { ws, W, a, kept } = await oneOfEach()
      const all = await ledgerOf(api(), ws)
      clock.advance(5000)
      await api().imprint(ws, 'later')
      const later = await ledgerOf(api(), ws)
      const query = async (filter: Record<string, string>): Promise<number[]> =>
        (await ledgerOf(api(), ws, String(new URLSearchParams(filter)))).map(({ seq }) => seq)
      const seqs = (entries: LedgerEntry[], keep: (entry: LedgerEntry) => boolean): number[] =>
        entries.filter(keep).map(({ seq }) => seq)
      const lastTime = all.at(-1)?.ts ?? ''
      const laterTime = later.at(-1)?.ts ?? ''
      const inZone = (time: string): string =>
        new Date(Date.parse(time) + 5.5 * 3600_000).toISOString().replace('Z', '+05:30')
      const cases: [filter: Record<string, string>, keep: (entry: LedgerEntry) => boolean][] = [
        [{}, () => true],
        [{ since: laterTime }, ({ ts }) => ts >= laterTime],
        [{ until: lastTime }, ({ ts }) => ts <= lastTime],
        [{ since: inZone(laterTime) }, ({ ts }) => ts >= laterTime],
        [{ since: '2020-01-01', until: '2020-01-02' }, () => false],
        [{ since: '2020-01-01T00:00:00Z' }, () => true],
        [{ actor: KEY_ID }, () => true],
        [{ actor: 'console' }, () => false],
        [{ agent_id: 'agent_a' }, ({ agent_id }) => agent_id === 'agent_a'],
        [{ agent_id: 'nobody' }, () => false],
        [{ memory_id: a.memory_id }, ({ target }) => target === a.memory_id],
        [{ edge_id: kept.edge.edge_id }, ({ target }) => target === kept.edge.edge_id],
        [{ op: 'link' }, ({ op }) => op === 'link'],
        [{ op: 'imprint,forget, link' }, ({ op }) => ['imprint', 'forget', 'link'].includes(op)],
        [{ op: 'orphan_gc' }, () => false],
        [
          { op: 'imprint,append', memory_id: a.memory_id, agent_id: 'agent_a', until: lastTime, actor: KEY_ID },
          ({ op, target }) => ['imprint', 'append'].includes(op) && target === a.memory_id,
        ],
        [{ memory_id: a.memory_id, op: 'link' }, () => false],
      ]
      for (const [filter, keep] of cases)
        expect({ filter, seqs: await query(filter) }).toEqual({ filter, seqs: seqs(later, keep) })
      const desc = expectOk(await api().call('GET', `${W}/ledger?op=imprint`)).entries
      expect(desc).toEqual(later.filter(({ op }) => op === 'imprint').toReversed())
      const bad: [field: string, value: string][] = [
        ...['yesterday', '', '2026-02-30', '2026-01-01T25:00', '12:00', '0'].flatMap((value): [string, string][] => [
          ['since', value],
          ['until', value],
        ]),
        ...['nope', '', 'imprint,', 'Imprint', 'imprint,nope'].map((value): [string, string] => ['op', value]),
        ...['up', '', 'ASC'].map((value): [string, string] => ['order', value]),
        ['limit', 'x'],
        ['since_ledger_id', 'nope'],
        ['since_ledger_id', ''],
        ['since_ledger_id', 'lg_01ARZ3NDEKTSV4RRFFQ69G5FAV'],
      ]
      for (const [field, value] of bad) {
        expectInvalid(await api().call('GET', `${W}/ledger?${field}=${encodeURIComponent(value)}`), field)
      }
      expectInvalid(await api().call('GET', `${W}/ledger?op=link&op=unlink`), 'op')
    })

    test('memory#111 paging by since_ledger_id: all, none twice, under writes', async () => {
      const ws = await api().workspace()
      const id = await api().imprint(ws, 'x')
      const path = `/workspaces/${ws}`
      const tag = (i: number) => api().call('PUT', `${path}/memories/${id}/tags/k`, { value: String(i) })
      for (let i = 0; i < 20; i++) await tag(i)
      const before = await ledgerOf(api(), ws)
      for (const name of ['since_ledger_id', 'cursor']) {
        const seen: LedgerEntry[] = []
        for (let since = ''; ;) {
          const page = expectOk(await api().call('GET', `${path}/ledger?limit=4${since}`))
          seen.push(...page.entries)
          if (page.next_cursor === undefined) break
          expect(page.next_cursor).toBe(page.entries.at(-1).ledger_id)
          since = `&${name}=${page.next_cursor}`
          await Promise.all([tag(100), tag(101)])
        }
        const newest = seen[0]?.seq ?? 0
        expect(seen.map(({ seq }) => seq)).toEqual(Array.from({ length: newest }, (_, i) => newest - i))
      }
      expect(before.length).toBe(23)
      const all = await ledgerOf(api(), ws)
      expect(await readPages(api(), `${path}/ledger?order=asc`, 'entries', 7)).toEqual(all)
      expect(await readPages(api(), `${path}/ledger?op=tag_set`, 'entries', 9)).toEqual(
        all.filter(({ op }) => op === 'tag_set').toReversed(),
      )
      const exact = expectOk(await api().call('GET', `${path}/ledger?limit=${all.length}`))
      expect(Object.keys(exact)).toEqual(['entries'])
    })

    test('memory#112 order=asc tail sees each new entry once', async () => {
      const ws = await api().workspace()
      const path = `/workspaces/${ws}/ledger?order=asc&limit=3`
      const seen: LedgerEntry[] = []
      const tail = async (): Promise<number> => {
        const last = seen.at(-1)
        const { entries } = expectOk(await api().call('GET', last ? `${path}&since_ledger_id=${last.ledger_id}` : path))
        seen.push(...entries)
        return entries.length
      }
      while ((await tail()) > 0);
      const writes = Array.from({ length: 12 }, (_, i) => api().imprint(ws, `entry ${i}`))
      for (let i = 0; i < 4; i++) await tail()
      await Promise.all(writes)
      while ((await tail()) > 0);
      expect(await tail()).toBe(0)
      expect(seen).toEqual(await ledgerOf(api(), ws))
      expect(seen.map(({ seq }) => seq)).toEqual(seen.map((_, i) => i + 1))
    })
  },
  { clock, env: { MEM_API_KEY: KEY } },
)
