import { expect, test } from 'vitest'
import { md5 } from '../../src/base/hash.ts'
import { editing, IF_MATCH } from './editing.ts'
import { describeOnBoth } from '../support/memory-api.ts'
import { expectError, expectInvalid, expectOk, ledgerOf } from '../support/expectations.ts'

const ABSENT = '01ARZ3NDEKTSV4RRFFQ69G5FAV'

describeOnBoth('edits', (api) => {
  const { remember, lookup, head, update, patch, append, E, editor, expectUnchanged } = editing(api)

  test('memory#19 PUT with head: 200, new mark, before/after in ledger', async () => {
    const { ws, id, M, first } = await remember('old content')
    const before = await lookup(M)
    const reply = await update(M, { content: 'new content', expected_watermark: first }, editor)
    const answer = expectOk(reply)
    expect(answer).toEqual({ ...E(id, 'new content'), cells_re_embedded: 1, cells_skipped: 0 })
    expect(answer.watermark).not.toBe(first)
    expect(reply.headers.get('etag')).toBe(`"${answer.watermark}"`)
    const after = await lookup(M)
    expect(after).toMatchObject({
      content: 'new content',
      content_md5: md5('new content'),
      head_watermark: answer.watermark,
      created_watermark: first,
      written_by_agent_id: 'agent_test',
      last_modified_by_agent_id: 'agent_editor',
      created_at: before.created_at,
      recall_ready: true,
      cells: [{ text: 'new content', written_by_agent_id: 'agent_editor' }],
    })
    expect(after.updated_at >= before.updated_at).toBe(true)
    const equal = expectOk(await update(M, { content: 'new content', expected_watermark: answer.watermark }))
    expect(equal).toMatchObject({ cells_re_embedded: 0, cells_skipped: 1, last_modified_by_agent_id: 'agent_test' })
    expect(equal.watermark).not.toBe(answer.watermark)
    expect((await lookup(M)).cells).toEqual(after.cells)
    const blank = expectOk(await update(M, { content: '' }, IF_MATCH(equal.watermark)))
    expect(await lookup(M)).toMatchObject({ content: '', cells: [], recall_ready: false })
    expect(await ledgerOf(api(), ws, `memory_id=${id}&op=update`)).toMatchObject([
      {
        ledger_id: answer.ledger_id,
        watermark_before: first,
        watermark_after: answer.watermark,
        agent_id: 'agent_editor',
        metadata: { cells_re_embedded: 1, cells_skipped: 0 },
      },
      { watermark_before: answer.watermark, watermark_after: equal.watermark },
      { watermark_before: equal.watermark, watermark_after: blank.watermark },
    ])
  })

  test('memory#20 PUT with old mark: 412, both marks in details, content unchanged', async () => {
    const { ws, M, first } = await remember('one')
    const second = expectOk(await update(M, { content: 'two', expected_watermark: first })).watermark
    await expectUnchanged(ws, M, async () => {
      for (const expected_watermark of [first, 'nonsense', `wmk_${ABSENT}`]) {
        const details = { expected_watermark, head_watermark: second }
        expectError(await update(M, { content: 'three', expected_watermark }), 412, 'cas_conflict', details)
        expectError(
          await update(M, { content: 'three' }, IF_MATCH(`"${expected_watermark}"`)),
          412,
          'cas_conflict',
          details,
        )
      }
    })
  })

  test('memory#21 PUT or PATCH without mark: 400', async () => {
    const { ws, M, first } = await remember('one')
    await expectUnchanged(ws, M, async () => {
      expectInvalid(await update(M, { content: 'two' }), 'expected_watermark')
      expectInvalid(await patch(M, []), 'expected_watermark')
      for (const expected_watermark of ['', null, 1, [first]]) {
        expectInvalid(await update(M, { content: 'two', expected_watermark }), 'expected_watermark')
        expectInvalid(await append(M, { content: 'two', expected_watermark }), 'expected_watermark')
      }
      for (const content of [undefined, null, 3]) {
        expectInvalid(await update(M, { content, expected_watermark: first }), 'content')
      }
      expectInvalid(await update(M, { content: 'x', tags: null, expected_watermark: first }), 'tags')
      expectInvalid(await update(M, { content: 'x', chunker_id: 'csv', expected_watermark: first }), 'chunker_id')
      expectInvalid(await update(M, { content: 'x', auto_link: true, expected_watermark: first }), 'auto_link')
      const options = { agent: null }
      expectError(await update(M, { content: 'x', expected_watermark: first }, options), 400, 'missing_agent_id')
    })
    for (const reply of [
      await update(M.replace(/mem_.*/, `mem_${ABSENT}`), { content: 'x', expected_watermark: first }),
      await patch(M.replace(/mem_.*/, 'nope'), [], first),
    ]) {
      expectError(reply, 404, 'not_found', { resource: 'memory' })
    }
  })

  test('memory#22 If-Match raw, quoted, W/: 200; *, empty: 400; header beats body', async () => {
    const { ws, id, M } = await remember('0')
    for (const form of [(mark: string) => mark, (mark: string) => `"${mark}"`, (mark: string) => `W/"${mark}"`]) {
      expectOk(await update(M, { content: 'x' }, IF_MATCH(form(await head(M)))))
      expectOk(await patch(M, [{ old_string: 'x', new_string: 'y' }], undefined, IF_MATCH(form(await head(M)))))
      expectOk(await append(M, { content: 'z' }, IF_MATCH(form(await head(M)))))
    }
    expectOk(await update(M, { content: 'x', expected_watermark: 'old' }, IF_MATCH(await head(M))))
    const mark = await head(M)
    await expectUnchanged(ws, M, async () => {
      for (const bad of ['*', '', ' ', '""', 'W/""', '"*"']) {
        for (const reply of [
          await update(M, { content: 'y', expected_watermark: mark }, IF_MATCH(bad)),
          await patch(M, [], mark, IF_MATCH(bad)),
          await append(M, { content: 'y' }, IF_MATCH(bad)),
          await api().call('DELETE', M, undefined, IF_MATCH(bad)),
        ]) {
          expectInvalid(reply, 'If-Match')
        }
      }
      const conflict = { expected_watermark: 'old', head_watermark: mark }
      const beaten = await update(M, { content: 'y', expected_watermark: mark }, IF_MATCH('old'))
      expectError(beaten, 412, 'cas_conflict', conflict)
      const appended = await append(M, { content: 'y', expected_watermark: mark }, IF_MATCH('"old"'))
      expectError(appended, 412, 'cas_conflict', conflict)
    })
    const unconditional = await api().call('GET', M, undefined, { headers: { 'If-None-Match': `"${mark}"` } })
    expect(expectOk(unconditional).id).toBe(id)
  })

  test('memory#23 PUT without tags keeps, with tags replaces', async () => {
    const { M } = await remember('x', { tags: { a: '1', b: '2' } })
    const put = async (fields: object) => {
      expectOk(await update(M, { content: 'y', ...fields }, IF_MATCH(await head(M))))
      return (await lookup(M)).tags
    }
    expect(await put({})).toEqual({ a: '1', b: '2' })
    expect(await put({ tags: { c: '3' } })).toEqual({ c: '3' })
    expect(await put({ tags: {} })).toBeUndefined()
    expect(await put({ tags: { c: '4', d: '' } })).toEqual({ c: '4', d: '' })
  })

  test('memory#24 lookup ETag is the quoted head and works as If-Match', async () => {
    const { M, first } = await remember('x')
    const etag = (await api().call('GET', M)).headers.get('etag') ?? ''
    expect(etag).toBe(`"${first}"`)
    const updated = await update(M, { content: 'y' }, IF_MATCH(etag))
    const appended = await append(M, { content: 'y' }, IF_MATCH(updated.headers.get('etag') ?? ''))
    const patched = await patch(M, [], undefined, IF_MATCH(appended.headers.get('etag') ?? ''))
    expect(patched.headers.get('etag')).toBe(`"${expectOk(appended).watermark}"`)
    expectOk(await api().call('DELETE', M, undefined, IF_MATCH(patched.headers.get('etag') ?? '')))
  })

  test('memory#25 patch with unique anchor: 200, changed once; replace_all: all', async () => {
    const { ws, id, M, first } = await remember('a cat, a dog, $& and a cow')
    const reply = await patch(M, [{ old_string: 'dog', new_string: "$& $1 $' dog" }], first, editor)
    const content = "a cat, a $& $1 $' dog, $& and a cow"
    const answer = expectOk(reply)
    expect(answer).toEqual({
      ...E(id, content),
      patches_applied: 1,
      cells_re_embedded: 1,
      cells_added: 0,
      cells_removed: 0,
      cells_skipped: 0,
    })
    expect(reply.headers.get('etag')).toBe(`"${answer.watermark}"`)
    expect((await lookup(M)).content).toBe(content)
    const several = [
      { old_string: 'a ', new_string: '', replace_all: true },
      { old_string: "$& $1 $' dog", new_string: 'hound', replace_all: false },
      { old_string: 'hound', new_string: 'fox' },
      { old_string: ', $& and cow', new_string: '' },
    ]
    expect(expectOk(await patch(M, several, answer.watermark)).patches_applied).toBe(4)
    expect((await lookup(M)).content).toBe('cat, fox')
    expect(await ledgerOf(api(), ws, 'op=patch')).toMatchObject([
      {
        target: id,
        watermark_before: first,
        watermark_after: answer.watermark,
        metadata: { patches_applied: 1, cells_re_embedded: 1, cells_skipped: 0, cells_added: 0, cells_removed: 0 },
      },
      { metadata: { patches_applied: 4 } },
    ])
    const emptied = await patch(M, [{ old_string: 'cat, fox', new_string: '' }], await head(M))
    expect(expectOk(emptied)).toMatchObject({ cells_re_embedded: 0, cells_removed: 1, cells_added: 0 })
    expect(await lookup(M)).toMatchObject({ content: '', cells: [] })
  })

  test('memory#26 absent, empty, ambiguous anchor: 400 patch_anchor_not_found + reason', async () => {
    const { ws, M, first } = await remember('one two two aaa')
    const cases: [old_string: string, reason: string, matches: number][] = [
      ['three', 'absent', 0],
      ['One', 'absent', 0],
      ['', 'empty', 0],
      ['two', 'ambiguous', 2],
      ['a', 'ambiguous', 3],
      ['aa', 'ambiguous', 2],
    ]
    await expectUnchanged(ws, M, async () => {
      for (const [old_string, reason, matches] of cases) {
        const details = { index: 0, reason, matches }
        expectError(await patch(M, [{ old_string, new_string: 'x' }], first), 400, 'patch_anchor_not_found', details)
        if (reason === 'ambiguous') continue
        const all = await patch(M, [{ old_string, new_string: 'x', replace_all: true }], first)
        expectError(all, 400, 'patch_anchor_not_found', details)
      }
      const bad: [field: string, patch: unknown][] = [
        ['patch', undefined],
        ['patch', null],
        ['patch', { old_string: 'one', new_string: 'x' }],
        ['patch.0', [null]],
        ['patch.0', ['one']],
        ['patch.0.new_string', [{ old_string: 'one' }]],
        ['patch.0.old_string', [{ old_string: null, new_string: 'x' }]],
        [
          'patch.1.new_string',
          [
            { old_string: 'one', new_string: 'x' },
            { old_string: 'two', new_string: 1 },
          ],
        ],
        ['patch.0.replace_all', [{ old_string: 'one', new_string: 'x', replace_all: null }]],
        ['patch.0.replaceAll', [{ old_string: 'two', new_string: 'x', replaceAll: true }]],
      ]
      for (const [field, operations] of bad) expectInvalid(await patch(M, operations, first), field)
      const explode = { old_string: 'a', new_string: 'a'.repeat(10_000), replace_all: true }
      expectInvalid(await patch(M, [explode, explode, explode], first), 'patch')
    })
    const long = await remember('a'.repeat(1_000_000))
    const overlapping = await patch(long.M, [{ old_string: 'a'.repeat(400_000), new_string: '' }], long.first)
    expectError(overlapping, 400, 'patch_anchor_not_found', { reason: 'ambiguous' })
  })

  test('memory#27 second of two operations fails: nothing changed; with an old mark too: 412', async () => {
    const { ws, M, first } = await remember('one two')
    const operations = [
      { old_string: 'one', new_string: '1' },
      { old_string: 'one', new_string: '2' },
    ]
    await expectUnchanged(ws, M, async () => {
      const failed = await patch(M, operations, first)
      expectError(failed, 400, 'patch_anchor_not_found', { index: 1, reason: 'absent', matches: 0 })
    })
    const second = expectOk(await append(M, { content: '!' })).watermark
    const details = { expected_watermark: first, head_watermark: second }
    await expectUnchanged(ws, M, async () => {
      expectError(await patch(M, operations, first), 412, 'cas_conflict', details)
      expectError(await patch(M, [], first), 412, 'cas_conflict', details)
    })
  })

  test('memory#28 patch without effect or empty list: 200, same mark, no entry', async () => {
    const { ws, id, M, first } = await remember('one two')
    const thereAndBack = [
      { old_string: 'one', new_string: 'three' },
      { old_string: 'three', new_string: 'one' },
    ]
    await api().call('PATCH', M, {}, editor) // registers the agent
    await expectUnchanged(ws, M, async () => {
      for (const operations of [[], [{ old_string: 'one', new_string: 'one' }], thereAndBack]) {
        const reply = await patch(M, operations, first, editor)
        const { ledger_id: _, ...unchanged } = E(id, 'one two')
        expect(expectOk(reply)).toEqual({
          ...unchanged,
          watermark: first,
          last_modified_by_agent_id: 'agent_test',
          patches_applied: operations.length,
          cells_re_embedded: 0,
          cells_added: 0,
          cells_removed: 0,
          cells_skipped: 1,
        })
        expect(reply.headers.get('etag')).toBe(`"${first}"`)
      }
    })
  })
})
