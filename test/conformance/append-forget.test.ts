import { expect, test } from 'vitest'
import { editing, IF_MATCH } from './editing.ts'
import { describeOnBoth } from '../support/memory-api.ts'
import {
  anId,
  expectError,
  expectInvalid,
  expectNoEntry,
  expectOk,
  ledgerOf,
  statusesOf,
} from '../support/expectations.ts'

describeOnBoth('appending and forgetting', (api) => {
  const { remember, lookup, head, update, append, E, editor, expectUnchanged } = editing(api)

  test('memory#29 append with, without, with stale mark: 200, 200, 412; no separator; empty: 400', async () => {
    const { ws, id, M, first } = await remember('one')
    const reply = await append(M, { content: 'two', expected_watermark: first }, editor)
    const answer = expectOk(reply)
    expect(answer).toEqual({ ...E(id, 'onetwo'), cells_added: 1, cells_skipped: 0 })
    expect(reply.headers.get('etag')).toBe(`"${answer.watermark}"`)
    expectOk(await append(M, { content: '\n\nthree' }))
    expect((await lookup(M)).content).toBe('onetwo\n\nthree')
    await expectUnchanged(ws, M, async () => {
      expectError(await append(M, { content: 'x', expected_watermark: first }), 412, 'cas_conflict', {
        expected_watermark: first,
        head_watermark: await head(M),
      })
      for (const content of ['', undefined, null, 1]) expectInvalid(await append(M, { content }), 'content')
      expectInvalid(await append(M, { content: 'x', tags: {} }), 'tags')
      expectError(await append(M, { content: 'x' }, { agent: null }), 400, 'missing_agent_id')
      expectError(await append(`${M}x`, { content: 'x' }), 404, 'not_found', { resource: 'memory' })
    })
    expect(expectOk(await append(M, { content: ' ' })).cells_added).toBe(1)
    expect(await ledgerOf(api(), ws, 'op=append')).toMatchObject([
      {
        target: id,
        watermark_before: first,
        watermark_after: answer.watermark,
        metadata: { cells_added: 1, cells_skipped: 0 },
      },
      {},
      {},
    ])
    const blank = await remember('')
    expect(expectOk(await append(blank.M, { content: 'now a Cell' }))).toMatchObject({
      cells_added: 1,
      cells_skipped: 0,
    })
    expect(await lookup(blank.M)).toMatchObject({ recall_ready: true, cells: [{ seq: 0, text: 'now a Cell' }] })
  })

  test('memory#30 20 parallel appends: all present; 20 PUTs on one mark: one 200, nineteen 412', async () => {
    const { ws, M } = await remember('start')
    const parts = Array.from({ length: 20 }, (_, i) => `<${i}>`)
    const appended = await Promise.all(parts.map((content) => append(M, { content })))
    expect(new Set(appended.map((reply) => expectOk(reply).watermark)).size).toBe(20)
    const { content, head_watermark: mark } = await lookup(M)
    expect(content).toHaveLength('start'.length + parts.join('').length)
    for (const part of parts) expect(content).toContain(part)
    const replies = await Promise.all(
      parts.map((part) => update(M, { content: part, expected_watermark: mark }, { agent: `agent_${part.length}` })),
    )
    expect(statusesOf(replies)).toEqual([200, ...Array.from({ length: 19 }, () => 412)])
    const winner = replies.findIndex(({ status }) => status === 200)
    expect((await lookup(M)).content).toBe(parts[winner])
    for (const reply of replies) {
      if (reply.status === 200) continue
      const details = { expected_watermark: mark, head_watermark: replies[winner]?.body.watermark }
      expectError(reply, 412, 'cas_conflict', details)
    }
    expect(await ledgerOf(api(), ws, 'op=append,update')).toHaveLength(21)
    expect(expectOk(await api().call('GET', `${M}/watermarks`)).watermarks).toHaveLength(22)
  })

  test('memory#31 forget: 200 with cascaded_edges; lookup, second forget: 404; stale If-Match: 412', async () => {
    const { ws, id, M, first } = await remember('x', { tags: { a: 'b' } })
    const second = expectOk(await append(M, { content: 'y' })).watermark
    await expectUnchanged(ws, M, async () => {
      const details = { expected_watermark: first, head_watermark: second }
      expectError(await api().call('DELETE', M, undefined, IF_MATCH(first)), 412, 'cas_conflict', details)
      expectError(await api().call('DELETE', M, undefined, { agent: null }), 400, 'missing_agent_id')
      for (const value of ['yes', '1', '', 'TRUE']) {
        expectInvalid(await api().call('DELETE', `${M}?redact_audit=${value}`), 'redact_audit')
      }
    })
    const reply = await api().call('DELETE', M, undefined, editor)
    const answer = expectOk(reply)
    expect(answer).toEqual({ memory_id: id, watermark: anId('wmk'), cascaded_edges: 0, ledger_id: anId('lg') })
    expect([first, second]).not.toContain(answer.watermark)
    expect(await ledgerOf(api(), ws, 'op=forget')).toMatchObject([
      {
        ledger_id: answer.ledger_id,
        target: id,
        agent_id: 'agent_editor',
        watermark_before: second,
        watermark_after: answer.watermark,
        metadata: { cascaded_edges: 0 },
      },
    ])
    expect((await ledgerOf(api(), ws, 'op=forget'))[0]).not.toHaveProperty('redact_audit')
    const gone = { resource: 'memory', id }
    expectError(await api().call('GET', M), 404, 'not_found', gone)
    await expectNoEntry(api(), ws, async () => {
      expectError(await api().call('DELETE', M), 404, 'not_found', gone)
      expectError(await api().call('DELETE', M, undefined, IF_MATCH(answer.watermark)), 404, 'not_found', gone)
    })
    expect(expectOk(await api().call('GET', `/workspaces/${ws}/memories`))).toEqual({ memories: [] })

    const twice = await remember('z')
    const pair = await Promise.all([api().call('DELETE', twice.M), api().call('DELETE', twice.M)])
    expect(statusesOf(pair)).toEqual([200, 404])
  })

  test('memory#32 after forget update, patch, append, tags, history, @mark, edges: 404', async () => {
    const { ws, id, M, first } = await remember('x', { tags: { a: 'b' } })
    const other = await api().imprint(ws, 'other')
    expectOk(await api().call('DELETE', M))
    const calls: [method: string, path: string, body?: object][] = [
      ['PUT', M, { content: 'y', expected_watermark: first }],
      ['PATCH', M, { patch: [], expected_watermark: first }],
      ['POST', `${M}:append`, { content: 'y' }],
      ['PUT', `${M}/tags/a`, { value: 'c' }],
      ['POST', `${M}/tags/a`, { value: 'c' }],
      ['DELETE', `${M}/tags/a`],
      ['GET', `${M}/watermarks`],
      ['GET', `${M}@${first}`],
      ['GET', `${M}/edges`],
      ['POST', `${M}/edges`, { target_memory_id: other, edge_type: 'references' }],
      ['POST', `/workspaces/${ws}/memories/${other}/edges`, { target_memory_id: id, edge_type: 'references' }],
      ['POST', `/workspaces/${ws}/graph/neighbors`, { memory_id: id }],
      ['POST', `/workspaces/${ws}/graph/traverse`, { seed_memory_id: id }],
    ]
    await expectNoEntry(api(), ws, async () => {
      for (const [method, path, body] of calls) {
        expectError(await api().call(method, path, body), 404, 'not_found', { resource: 'memory', id })
      }
    })
    const recall = await api().call('POST', `/workspaces/${ws}/recall`, { mode: 'lookup', memory_ids: [id, other] })
    expect(expectOk(recall).results).toMatchObject([{ memory_id: other }])
  })
})
