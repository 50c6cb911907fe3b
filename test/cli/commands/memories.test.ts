import { describe, expect, test } from 'vitest'
import { testVerbs, useServer } from './verb-table.ts'

const bench = useServer()

const memory = {
  id: 'mem_1',
  content: 'The keeper\nlikes  rye.',
  head_watermark: 'wmk_2',
  tags: { topic: 'food' },
  updated_at: '2026-01-02T00:00:00.000Z',
  cells: [],
}
const version = { ...memory, content: 'The keeper\nlikes wheat.', head_watermark: 'wmk_1', current_watermark: 'wmk_2' }
const edited = { memory_id: 'mem_1', watermark: 'wmk_3', cells_skipped: 2, cells_re_embedded: 1, cells_added: 1 }

testVerbs(bench, {
  imprint: {
    argv: 'imprint --text rye --collection coll_1 --chunker csv --chunker-opt delimiter=; --chunker-opt rows_per_cell=2 --tag a=b=c --tag d= --no-auto-link'.split(
      ' ',
    ),
    replies: [{ status: 201, body: { memory_id: 'mem_1', watermark: 'wmk_1', cells_created: 1 } }],
    sent: [
      {
        line: 'POST /v1/workspaces/ws_1/memories',
        body: {
          content: 'rye',
          collection_id: 'coll_1',
          chunker_id: 'csv',
          chunker_config: { delimiter: ';', rows_per_cell: '2' },
          tags: { a: 'b=c', d: '' },
          auto_link: false,
        },
        headers: { 'mem-agent-id': 'agent_opaque_local', 'x-mem-workspace': 'ws_1' },
      },
    ],
    shows: 'mem_1  wmk_1  1 Cell\n',
  },
  lookup: {
    argv: ['lookup', 'mem_1'],
    replies: [{ body: memory }],
    sent: [{ line: 'GET /v1/workspaces/ws_1/memories/mem_1' }],
    shows: 'The keeper\nlikes  rye.\n',
  },
  'lookup --at': {
    argv: ['lookup', 'mem_1', '--at', 'wmk_1'],
    replies: [{ body: version }],
    sent: [{ line: 'GET /v1/workspaces/ws_1/memories/mem_1@wmk_1' }],
    shows: 'The keeper\nlikes wheat.\n',
  },
  'update reads the head first': {
    argv: ['update', 'mem_1', '--text', 'x'],
    replies: [{ body: memory }, { body: edited }],
    sent: [
      { line: 'GET /v1/workspaces/ws_1/memories/mem_1' },
      { line: 'PUT /v1/workspaces/ws_1/memories/mem_1', body: { content: 'x' }, headers: { 'if-match': 'wmk_2' } },
    ],
    shows: 'mem_1  wmk_3  1 new Cell, 2 kept\n',
  },
  'update --if-match': {
    argv: ['update', 'mem_1', '--text', 'x', '--if-match', 'wmk_9'],
    replies: [{ body: edited }],
    sent: [
      { line: 'PUT /v1/workspaces/ws_1/memories/mem_1', body: { content: 'x' }, headers: { 'if-match': 'wmk_9' } },
    ],
    shows: 'mem_1  wmk_3  1 new Cell, 2 kept\n',
  },
  'patch reads the head first': {
    argv: ['patch', 'mem_1', '--patch', '[{"old_string":"a","new_string":"b"}]'],
    replies: [{ body: memory }, { body: { ...edited, patches_applied: 1, ledger_id: 'lg_1' } }],
    sent: [
      { line: 'GET /v1/workspaces/ws_1/memories/mem_1' },
      {
        line: 'PATCH /v1/workspaces/ws_1/memories/mem_1',
        body: { patch: [{ old_string: 'a', new_string: 'b' }] },
        headers: { 'if-match': 'wmk_2' },
      },
    ],
    shows: 'mem_1  wmk_3  1 change\n',
  },
  'patch --if-match that changes nothing': {
    argv: ['patch', 'mem_1', '--patch', '[]', '--if-match', 'wmk_2'],
    replies: [{ body: { ...edited, watermark: 'wmk_2', patches_applied: 0 } }],
    sent: [{ line: 'PATCH /v1/workspaces/ws_1/memories/mem_1', body: { patch: [] }, headers: { 'if-match': 'wmk_2' } }],
    shows: 'mem_1  wmk_2  unchanged\n',
  },
  append: {
    argv: ['append', 'mem_1', '--text', 'x'],
    replies: [{ body: edited }],
    sent: [{ line: 'POST /v1/workspaces/ws_1/memories/mem_1:append', body: { content: 'x' } }],
    shows: 'mem_1  wmk_3  1 new Cell, 2 kept\n',
  },
  forget: {
    argv: ['forget', 'mem_1', '--redact-audit'],
    replies: [{ body: { memory_id: 'mem_1', cascaded_edges: 2, redacted_entries: 3 } }],
    sent: [{ line: 'DELETE /v1/workspaces/ws_1/memories/mem_1?redact_audit=true' }],
    shows: 'mem_1  forgotten  2 Edges  3 ledger entries redacted\n',
  },
  watermarks: {
    argv: ['watermarks', 'mem_1'],
    replies: [
      { body: { watermarks: [{ watermark: 'wmk_1', op: 'imprint', agent_id: 'agent_a', created_at: 'then' }] } },
    ],
    sent: [{ line: 'GET /v1/workspaces/ws_1/memories/mem_1/watermarks' }],
    shows: 'wmk_1  then  imprint  agent_a\n',
  },
  'restore reads the head with the old version': {
    argv: ['restore', 'mem_1', 'wmk_1'],
    replies: [{ body: version }, { body: edited }],
    sent: [
      { line: 'GET /v1/workspaces/ws_1/memories/mem_1@wmk_1' },
      {
        line: 'PUT /v1/workspaces/ws_1/memories/mem_1',
        body: { content: version.content },
        headers: { 'if-match': 'wmk_2' },
      },
    ],
    shows: 'mem_1  wmk_3  as at wmk_1\n',
  },
  'tags set': {
    argv: ['tags', 'set', 'mem_1', 'a b', 'v'],
    replies: [{ status: 204 }],
    sent: [{ line: 'PUT /v1/workspaces/ws_1/memories/mem_1/tags/a%20b', body: { value: 'v' } }],
    shows: 'mem_1  a b=v\n',
  },
  'tags delete': {
    argv: ['tags', 'delete', 'mem_1', 'a'],
    replies: [{ status: 204 }],
    sent: [{ line: 'DELETE /v1/workspaces/ws_1/memories/mem_1/tags/a' }],
    shows: 'mem_1  a deleted\n',
  },
  list: {
    argv: ['list', '--collection', 'coll_1'],
    replies: [{ body: { memories: [memory] } }],
    sent: [{ line: 'GET /v1/workspaces/ws_1/memories?collection_id=coll_1&limit=50' }],
    shows: 'mem_1  The keeper likes rye.  topic=food\n',
  },
})

describe('diff', () => {
  const header = (a: string, b: string): string =>
    `--- mem_1@${a}\t${memory.updated_at}\n+++ mem_1@${b}\t${memory.updated_at}\n`
  const change =
    '@@ -1,2 +1,2 @@\n The keeper\n-likes wheat.\n\\ No newline at end of file\n+likes  rye.\n\\ No newline at end of file\n'

  test('against the head', async () => {
    bench.server.replies.push({ body: version }, { body: memory })
    expect(await bench.run(['diff', 'mem_1', 'wmk_1'])).toEqual({
      code: 0,
      stdout: header('wmk_1', 'wmk_2') + change,
      stderr: '',
    })
    expect(bench.server.requests.map(({ url }) => url).sort()).toEqual([
      '/v1/workspaces/ws_1/memories/mem_1',
      '/v1/workspaces/ws_1/memories/mem_1@wmk_1',
    ])
  })

  test('between two watermarks, as JSON', async () => {
    bench.server.replies.push({ body: version }, { body: memory })
    const { stdout } = await bench.run(['diff', 'mem_1', 'wmk_1', 'wmk_2', '-o', 'json'])
    const expected = { memory_id: 'mem_1', from: 'wmk_1', to: 'wmk_2', diff: header('wmk_1', 'wmk_2') + change }
    expect(JSON.parse(stdout)).toEqual(expected)
  })

  test('of equal texts is empty', async () => {
    bench.server.replies.push({ body: version }, { body: version })
    expect(await bench.run(['diff', 'mem_1', 'wmk_1', 'wmk_1'])).toEqual({ code: 0, stdout: '', stderr: '' })
  })
})
