import { expect, test } from 'vitest'
import { testVerbs, useServer } from './verb-table.ts'

const bench = useServer()

const edge = { edge_id: 'edg_1', source_memory_id: 'mem_1', target_memory_id: 'mem_2', edge_type: 'references' }

testVerbs(bench, {
  recall: {
    argv: [
      'recall',
      'what?',
      '--mode',
      'keyword',
      '--k',
      '3',
      '--collection',
      'coll_1',
      '--neighbor-depth',
      '1',
      '--edge-types',
      'references, mentions',
    ],
    replies: [
      {
        body: {
          results: [
            { memory_id: 'mem_1', score: 0.51234, text: 'rye', via: 'seed' },
            {
              memory_id: 'mem_2',
              score: 0.1,
              text: 'oats',
              via: 'graph',
              graph_provenance: { edge_type: 'references' },
            },
          ],
        },
      },
    ],
    sent: [
      {
        line: 'POST /v1/workspaces/ws_1/recall',
        body: {
          query: 'what?',
          mode: 'keyword',
          k: 3,
          filters: { collection_id: 'coll_1' },
          graph_expansion: { depth: 1, edge_types: ['references', 'mentions'] },
        },
      },
    ],
    shows: 'mem_1  0.512  rye\nmem_2  0.100  via references  oats\n',
  },
  'recall with defaults': {
    argv: ['recall', 'what?'],
    replies: [{ body: { results: [] } }],
    sent: [{ line: 'POST /v1/workspaces/ws_1/recall', body: { query: 'what?', k: 5 } }],
    shows: '',
  },
  'pin create': {
    argv: ['pin', 'create', '--query', 'q', '--mode', 'vector', '--watermark', 'mark', '--label', 'l'],
    replies: [{ status: 201, body: { pin_id: 'pin_1', watermark: 'mark' } }],
    sent: [
      {
        line: 'POST /v1/workspaces/ws_1/recall/pins',
        body: { query: 'q', mode: 'vector', k: 10, watermark: 'mark', label: 'l' },
      },
    ],
    shows: 'pin_1  mark\n',
  },
  'pin list': {
    argv: ['pin', 'list'],
    replies: [{ body: { pins: [{ pin_id: 'pin_1', mode: 'hybrid', k: 10, query: 'q' }] } }],
    sent: [{ line: 'GET /v1/workspaces/ws_1/recall/pins' }],
    shows: 'pin_1  hybrid  k=10  q\n',
  },
  'pin delete': {
    argv: ['pin', 'delete', 'pin_1'],
    replies: [{ status: 204 }],
    sent: [{ line: 'DELETE /v1/workspaces/ws_1/recall/pins/pin_1' }],
    shows: 'pin_1  deleted\n',
  },
  link: {
    argv: ['link', 'mem_1', 'mem_2', '--type', 'supersedes', '--properties', '{"by":"me"}'],
    replies: [{ status: 201, body: { edge, ledger_id: 'lg_1' } }],
    sent: [
      {
        line: 'POST /v1/workspaces/ws_1/memories/mem_1/edges',
        body: { target_memory_id: 'mem_2', edge_type: 'supersedes', properties_json: { by: 'me' } },
      },
    ],
    shows: 'edg_1  mem_1 supersedes mem_2\n',
  },
  unlink: {
    argv: ['unlink', 'edg_1'],
    replies: [{ status: 204 }],
    sent: [{ line: 'DELETE /v1/workspaces/ws_1/edges/edg_1' }],
    shows: 'edg_1  unlinked\n',
  },
  neighbors: {
    argv: ['neighbors', 'mem_1', '--types', 'references'],
    replies: [{ body: { edges: [edge], neighbors: [{ memory_id: 'mem_2', tags: { a: 'b' } }] } }],
    sent: [
      {
        line: 'POST /v1/workspaces/ws_1/graph/neighbors',
        body: { memory_id: 'mem_1', direction: 'both', edge_types: ['references'], k: 50 },
      },
    ],
    shows: 'mem_2  out  references  edg_1  a=b\n',
  },
  traverse: {
    argv: ['traverse', 'mem_1', '--depth', '2'],
    replies: [
      {
        body: {
          seed: { memory_id: 'mem_1' },
          layers: [[{ memory_id: 'mem_2', via_edge_id: 'edg_1', via_edge_type: 'references' }]],
          stats: { nodes_visited: 1, edges_walked: 1, truncated: false },
        },
      },
    ],
    sent: [
      {
        line: 'POST /v1/workspaces/ws_1/graph/traverse',
        body: { seed_memory_id: 'mem_1', depth: 2, direction: 'out' },
      },
    ],
    shows: 'mem_2  layer 1  references  edg_1\n',
  },
  'graph stats': {
    argv: ['graph', 'stats'],
    replies: [{ body: { node_count: 2, edge_count_by_type: { references: 1 } } }],
    sent: [{ line: 'GET /v1/workspaces/ws_1/graph/stats' }],
    shows: 'Memories  2\nreferences  1\n',
  },
})

test('rows of a batch that failed are shown and exit 4', async () => {
  const results = [
    { index: 0, status: 'ok', edge_id: 'edg_1', ledger_id: 'lg_1' },
    { index: 1, status: 'error', error: 'memory mem_9 does not exist', error_code: 'not_found' },
  ]
  const batch = '{"source_memory_id":"mem_1","target_memory_id":"mem_2","edge_type":"mentions"}\n\n{}\n'
  bench.server.replies.push({ body: { results, ok: 1, failed: 1 } })
  const result = await bench.run(['link-batch', '-'], batch)
  expect(result).toMatchObject({ code: 4, stdout: 'edg_1  ok\nrow 1  error  memory mem_9 does not exist\n' })
  expect(bench.server.requests[0]).toMatchObject({
    url: '/v1/workspaces/ws_1/edges/:batch',
    body: { edges: [{ source_memory_id: 'mem_1', target_memory_id: 'mem_2', edge_type: 'mentions' }, {}] },
  })
})

test('warnings and the next page are remarks on stderr', async () => {
  bench.server.replies.push({ body: { results: [], warnings: ['vector_unavailable'] } })
  bench.server.replies.push(
    { body: { memories: [], next_cursor: 'c2' } },
    { body: { memories: [], next_cursor: 'c2' } },
  )
  expect(await bench.run(['recall', 'q'])).toEqual({ code: 0, stdout: '', stderr: 'warning: vector_unavailable\n' })
  expect(await bench.run(['list'])).toEqual({ code: 0, stdout: '', stderr: 'more: --cursor c2\n' })
  expect(await bench.run(['list', '-q'])).toEqual({ code: 0, stdout: '', stderr: '' })
})
