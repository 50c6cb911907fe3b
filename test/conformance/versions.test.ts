import { expect, test } from 'vitest'
import { md5 } from '../../src/base/hash.ts'
import { createLogger } from '../../src/base/log.ts'
import { openDatabase } from '../../src/database/open.ts'
import { Outbox } from '../../src/memory/outbox.ts'
import { Seams } from '../../src/memory/seams.ts'
import { vectorRows } from '../../src/memory/store/vector/rows.ts'
import { Bodies } from '../../src/memory/store/content/bodies.ts'
import { Sweeper } from '../../src/memory/sweeper.ts'
import { adjustableClock, describeOnBoth, startMemoryApi, type MemoryApi, type Reply } from '../support/memory-api.ts'
import { aTime, expectError, expectInvalid, expectOk, readPages } from '../support/expectations.ts'

const DAY_MS = 24 * 3600 * 1000
const ABSENT = 'wmk_01ARZ3NDEKTSV4RRFFQ69G5FAV'
const clock = adjustableClock()

/** A Memory and its watermarks, one a content, made by update. */
async function remember(api: MemoryApi, contents: string[], fields: object = {}) {
  const ws = await api.workspace()
  const path = `/workspaces/${ws}/memories`
  const { memory_id: id, watermark } = expectOk(await api.call('POST', path, { content: contents[0], ...fields }), 201)
  const marks: string[] = [watermark]
  const M = `${path}/${id}`
  for (const content of contents.slice(1)) {
    marks.push(expectOk(await api.call('PUT', M, { content, expected_watermark: marks.at(-1) })).watermark)
  }
  return { ws, id: String(id), M, marks }
}

describeOnBoth(
  'versions',
  (api) => {
    const at = (M: string, mark: string | undefined) => api().call('GET', `${M}@${mark}`)
    const history = async (M: string): Promise<Reply['body'][]> =>
      expectOk(await api().call('GET', `${M}/watermarks`)).watermarks

    test('memory#33 @ first mark after update, patch, append: first content, MD5, current_watermark', async () => {
      const { M, marks } = await remember(api(), ['first\r\n😀', 'second'], { chunker_id: 'no-chunk' })
      const [first = '', second = ''] = marks
      const call = async (method: string, path: string, body: object, agent: string): Promise<string> =>
        expectOk(await api().call(method, path, body, { agent })).watermark
      const patched = { patch: [{ old_string: 'second', new_string: 'third' }], expected_watermark: second }
      const third = await call('PATCH', M, patched, 'agent_patcher')
      const fourth = await call('POST', `${M}:append`, { content: ' and fourth' }, 'agent_appender')
      const current = expectOk(await api().call('GET', M))
      const { cells: _, ...memory } = current
      const expected: [mark: string, content: string, agent: string][] = [
        [first, 'first\r\n😀', 'agent_test'],
        [second, 'second', 'agent_test'],
        [third, 'third', 'agent_patcher'],
        [fourth, 'third and fourth', 'agent_appender'],
      ]
      for (const [mark, content, agent] of expected) {
        const reply = await at(M, mark)
        expect(expectOk(reply)).toEqual({
          ...memory,
          content,
          content_md5: md5(content),
          head_watermark: mark,
          last_modified_by_agent_id: agent,
          updated_at: aTime,
          current_watermark: fourth,
        })
        expect(reply.headers.get('etag')).toBe(`"${mark}"`)
        expect(await api().call('HEAD', `${M}@${mark}`)).toMatchObject({ status: 200, body: undefined })
      }
      const entries = (await history(M)).toReversed()
      for (const [i, [mark]] of expected.entries()) {
        expect(expectOk(await at(M, mark)).updated_at).toBe(entries[i].created_at)
      }
    })

    test('memory#34 @ works after restart and as %40; unknown or another Memory’s mark: 404', async () => {
      const { ws, id, M, marks } = await remember(api(), ['one', 'two'])
      const other = await remember(api(), ['other'])
      const { dialect, dataDir, address } = api()
      const restarted = await startMemoryApi({ dialect, dataDir, postgresUrl: address.dsn })
      expect(expectOk(await restarted.call('GET', `${M}@${marks[0]}`))).toMatchObject({
        content: 'one',
        current_watermark: marks[1],
      })
      await restarted.stop()
      expect(expectOk(await api().call('GET', `${M}%40${marks[0]}`)).content).toBe('one')
      expect(expectOk(await api().call('GET', `${M}%40${marks[1]}`)).content).toBe('two')
      const twin = await api().imprint(ws, 'one')
      for (const mark of [ABSENT, other.marks[0], 'x', marks[0]?.toLowerCase(), `${marks[0]}x`, id, '%2a']) {
        const details = { resource: 'watermark', id: mark === '%2a' ? '*' : mark }
        expectError(await at(M, mark), 404, 'not_found', details)
      }
      expectError(await at(`/workspaces/${ws}/memories/${twin}`, marks[0]), 404, 'not_found')
      expectError(await at(`/workspaces/${ws}/memories/nope`, marks[0]), 404, 'not_found', { resource: 'memory' })
      const posted = await api().call('POST', `${M}%3Aappend`, { content: '!' })
      expect(expectOk(posted).content_md5).toBe(md5('two!'))
      expectError(await api().call('PUT', `${M}@${marks[0]}`, { content: 'x' }), 405, 'method_not_allowed')
    })

    test('memory#35 tags at @mark as they last stood under that head', async () => {
      const { M, marks } = await remember(api(), ['one'], { tags: { a: '1', b: '1' } })
      const tag = async (method: string, key: string, value?: string) =>
        expectOk(await api().call(method, `${M}/tags/${key}`, value === undefined ? undefined : { value }), 204)
      const put = async (body: object): Promise<void> => {
        const expected_watermark = marks.at(-1)
        marks.push(expectOk(await api().call('PUT', M, { ...body, expected_watermark })).watermark)
      }
      await tag('PUT', 'a', '2')
      await tag('DELETE', 'b')
      await put({ content: 'two' })
      await tag('PUT', 'c', '3')
      await put({ content: 'three', tags: {} })
      await put({ content: 'four', tags: { d: '4' } })
      await tag('PUT', '__proto__', '5')
      await put({ content: 'five', tags: { e: '6' } })
      const tagsAt = async (mark: string | undefined): Promise<string> =>
        JSON.stringify(expectOk(await at(M, mark)).tags)
      expect(await Promise.all(marks.map(tagsAt))).toEqual([
        '{"a":"2"}',
        '{"a":"2","c":"3"}',
        undefined,
        '{"__proto__":"5","d":"4"}',
        '{"e":"6"}',
      ])
    })

    test('memory#36 history: newest first, one entry per version, right op, MD5, agent', async () => {
      const { ws, id, M, marks } = await remember(api(), ['one', 'two'])
      const call = async (method: string, path: string, body: object, agent: string): Promise<void> => {
        marks.push(expectOk(await api().call(method, path, body, { agent })).watermark)
      }
      const patch = [{ old_string: 'two', new_string: 'three' }]
      await call('PATCH', M, { patch, expected_watermark: marks[1] }, 'agent_p')
      await call('POST', `${M}:append`, { content: '!' }, 'agent_a')
      await api().call('PATCH', M, { patch: [], expected_watermark: marks[3] })
      await api().call('PUT', `${M}/tags/a`, { value: 'b' })
      const entry = (
        watermark: string | undefined,
        op: string,
        agent_id: string,
        before: string | null,
        after: string,
      ) => ({
        target_id: id,
        watermark,
        op,
        agent_id,
        created_at: aTime,
        ...(before !== null && { content_md5_before: md5(before) }),
        content_md5_after: md5(after),
      })
      const expected = [
        entry(marks[3], 'append', 'agent_a', 'three', 'three!'),
        entry(marks[2], 'patch', 'agent_p', 'two', 'three'),
        entry(marks[1], 'update', 'agent_test', 'one', 'two'),
        entry(marks[0], 'imprint', 'agent_test', null, 'one'),
      ]
      const answer = expectOk(await api().call('GET', `${M}/watermarks`))
      expect(answer).toEqual({ watermarks: expected })
      for (const limit of [1, 2, 3, 4]) {
        expect(await readPages(api(), `${M}/watermarks`, 'watermarks', limit)).toEqual(expected)
      }
      expectInvalid(await api().call('GET', `${M}/watermarks?cursor=x`), 'cursor')
      expectInvalid(await api().call('GET', `${M}/watermarks?limit=all`), 'limit')
      const missing = await api().call('GET', `/workspaces/${ws}/memories/nope/watermarks`)
      expectError(missing, 404, 'not_found', { resource: 'memory', id: 'nope' })
    })

    test('memory#37 history hides marks over 7 days old; @mark still reads them', async () => {
      const { M, marks } = await remember(api(), ['one', 'two'])
      clock.advance(6 * DAY_MS)
      marks.push(expectOk(await api().call('POST', `${M}:append`, { content: '!' })).watermark)
      expect((await history(M)).map(({ watermark }) => watermark)).toEqual(marks.toReversed())
      clock.advance(1.5 * DAY_MS)
      expect((await history(M)).map(({ watermark }) => watermark)).toEqual([marks[2]])
      expect(expectOk(await at(M, marks[0])).content).toBe('one')
      clock.advance(100 * DAY_MS)
      expect(await history(M)).toEqual([])
      expect(expectOk(await at(M, marks[1])).content).toBe('two')
      expect(expectOk(await api().call('GET', M))).toMatchObject({ content: 'two!', head_watermark: marks[2] })
    })
  },
  { clock },
)

describeOnBoth(
  'version retention',
  (api) => {
    test('memory#38 retention 1 day: older superseded versions 404, head stays', async () => {
      const { M, marks } = await remember(api(), ['one', 'two'])
      const quiet = await remember(api(), ['never edited'])
      const status = async (path: string, mark?: string): Promise<number> =>
        (await api().call('GET', `${path}@${mark}`)).status
      clock.advance(0.9 * DAY_MS)
      expect(await status(M, marks[0])).toBe(200)
      clock.advance(2 * DAY_MS)
      marks.push(expectOk(await api().call('POST', `${M}:append`, { content: '!' })).watermark)
      const expectExpired = async (): Promise<void> => {
        const details = { resource: 'watermark', id: marks[0] }
        expectError(await api().call('GET', `${M}@${marks[0]}`), 404, 'not_found', details)
        expect(await status(M, marks[2])).toBe(200)
        expect(await status(quiet.M, quiet.marks[0])).toBe(200)
        expect(expectOk(await api().call('GET', M)).content).toBe('two!')
      }
      await expectExpired()

      const database = openDatabase(api().address)
      const databases = { metadata: database, vector: database, vectors: vectorRows, graph: database, ledger: database }
      const log = createLogger('silent', 'json')
      const seams = new Seams(
        databases,
        new Outbox(databases, clock, 'test', log),
        new Bodies(database, undefined, log),
      )
      await new Sweeper(seams, clock, 1, log).sweep()
      const left = await database.all<{ watermark: string }>('SELECT watermark FROM memory_version ORDER BY watermark')
      expect(left.map(({ watermark }) => watermark)).toEqual([marks[1], quiet.marks[0], marks[2]])
      await database.close()
      await expectExpired()
    })
  },
  { clock, file: 'storage: {version_retention_days: 1}' },
)
