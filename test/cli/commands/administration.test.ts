import { expect, test } from 'vitest'
import { testVerbs, useServer } from './verb-table.ts'

const bench = useServer()

const workspace = {
  id: 'ws_1',
  name: 'notes',
  region: 'eu',
  meta: { a: 1 },
  auto_link_enabled: true,
  auto_link_threshold: 0.7,
  auto_link_max_edges: 10,
  auto_link_max_incoming_per_day: 100,
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-02T00:00:00.000Z',
}
const { id: _id, created_at: _created, updated_at: _updated, ...workspaceRequest } = workspace
const collection = { id: 'coll_1', workspace_id: 'ws_1', name: 'meetings', created_at: '2026-01-01T00:00:00.000Z' }
const agent = { agent_id: 'agent_b', display_name: 'Bob', identity_provider: 'opaque', active: true }

testVerbs(bench, {
  'workspaces list': {
    argv: ['workspaces', 'list', '--limit', '2', '--cursor', 'c1'],
    replies: [{ body: { workspaces: [workspace], next_cursor: 'c2' } }],
    sent: [{ line: 'GET /v1/workspaces?limit=2&cursor=c1' }],
    shows: 'ws_1  notes  eu  auto-link\n',
  },
  'workspaces create': {
    argv: 'workspaces create --name notes --region eu --chunker markdown --embedding-model hash:default --auto-link'.split(
      ' ',
    ),
    replies: [{ status: 201, body: workspace }],
    sent: [
      {
        line: 'POST /v1/workspaces',
        body: {
          name: 'notes',
          region: 'eu',
          chunker_id: 'markdown',
          embedding_model: 'hash:default',
          auto_link_enabled: true,
        },
      },
    ],
    shows: 'ws_1  notes  eu  auto-link\n',
  },
  'workspaces show': {
    argv: ['workspaces', 'show', 'ws_2'],
    replies: [{ body: workspace }],
    sent: [{ line: 'GET /v1/workspaces/ws_2', headers: { 'x-mem-workspace': 'ws_2' } }],
    shows: 'ws_1  notes  eu  auto-link\n',
  },
  'workspaces update: what is not named stays': {
    argv: ['workspaces', 'update', 'ws_1', '--region', '', '--chunker', 'csv', '--no-auto-link'],
    replies: [{ body: workspace }, { body: { ...workspace, auto_link_enabled: false } }],
    sent: [
      { line: 'GET /v1/workspaces/ws_1' },
      {
        line: 'PUT /v1/workspaces/ws_1',
        body: { ...workspaceRequest, region: undefined, chunker_id: 'csv', auto_link_enabled: false },
      },
    ],
    shows: 'ws_1  notes  eu\n',
  },
  'workspaces delete': {
    argv: ['workspaces', 'delete', 'ws_1'],
    replies: [{ status: 204 }],
    sent: [{ line: 'DELETE /v1/workspaces/ws_1' }],
    shows: 'ws_1  deleted\n',
  },
  'collections list': {
    argv: ['collections', 'list'],
    replies: [{ body: { collections: [collection] } }],
    sent: [{ line: 'GET /v1/workspaces/ws_1/collections' }],
    shows: 'coll_1  meetings\n',
  },
  'collections create': {
    argv: ['collections', 'create', 'meetings'],
    replies: [{ status: 201, body: collection }],
    sent: [{ line: 'POST /v1/workspaces/ws_1/collections', body: { name: 'meetings' } }],
    shows: 'coll_1  meetings\n',
  },
  'collections delete': {
    argv: ['collections', 'delete', 'coll_1'],
    replies: [{ status: 204 }],
    sent: [{ line: 'DELETE /v1/workspaces/ws_1/collections/coll_1' }],
    shows: 'coll_1  deleted\n',
  },
  'agents list': {
    argv: ['agents', 'list'],
    replies: [{ body: { agents: [agent] } }],
    sent: [{ line: 'GET /v1/workspaces/ws_1/agents' }],
    shows: 'agent_b  Bob  opaque  active\n',
  },
  'agents show': {
    argv: ['agents', 'show', '--agent-id', 'agent_b'],
    replies: [{ body: agent }],
    sent: [{ line: 'GET /v1/workspaces/ws_1/agents/agent_b', headers: { 'mem-agent-id': 'agent_opaque_local' } }],
    shows: 'agent_b  Bob  opaque  active\n',
  },
  'agents register': {
    argv: ['--agent-id', 'agent_a', 'agents', 'register', '--agent-id', 'agent_b', '--display-name', 'Bob'],
    replies: [{ status: 201, body: agent }],
    sent: [
      {
        line: 'POST /v1/workspaces/ws_1/agents',
        body: { agent_id: 'agent_b', identity_provider: 'opaque', display_name: 'Bob' },
        headers: { 'mem-agent-id': 'agent_a' },
      },
    ],
    shows: 'agent_b  Bob  opaque  active\n',
  },
  'agents deactivate': {
    argv: ['agents', 'deactivate', 'agent_b'],
    replies: [{ status: 204 }],
    sent: [{ line: 'DELETE /v1/workspaces/ws_1/agents/agent_b' }],
    shows: 'agent_b  deactivated\n',
  },
  'ledger list': {
    argv: 'ledger list --since 2026-01-01 --until 2026-01-02 --actor console --agent agent_b --memory mem_1 --edge edg_1 --op link --limit 9 --cursor lg_0 --order asc'.split(
      ' ',
    ),
    replies: [
      { body: { entries: [{ ledger_id: 'lg_1', ts: 'then', op: 'link', target: 'edg_1', agent_id: 'agent_b' }] } },
    ],
    sent: [
      {
        line:
          'GET /v1/workspaces/ws_1/ledger?since=2026-01-01&until=2026-01-02&actor=console&op=link&order=asc' +
          '&limit=9&cursor=lg_0&agent_id=agent_b&memory_id=mem_1&edge_id=edg_1',
      },
    ],
    shows: 'lg_1  then  link  edg_1  agent_b\n',
  },
  health: {
    argv: ['health'],
    replies: [{ body: { ok: true, status: 'live', version: '1.2.3' } }],
    sent: [{ line: 'GET /healthz' }],
    shows: 'live  version 1.2.3\n',
  },
  ready: {
    argv: ['ready'],
    replies: [{ body: { ok: true, status: 'ready', adapter: { primary: 'ok', vector: 'ok', ledger: 'ok' } } }],
    sent: [{ line: 'GET /readyz' }],
    shows: 'ready\nprimary  ok\nvector  ok\nledger  ok\n',
  },
})

test('a degraded server is shown and exits 3', async () => {
  const adapter = { primary: 'ok', vector: 'down: gone', ledger: 'ok' }
  bench.server.replies.push({ status: 503, body: { ok: false, status: 'degraded', adapter } })
  const result = await bench.run(['ready'])
  expect(result).toMatchObject({ code: 3, stdout: 'degraded\nprimary  ok\nvector  down: gone\nledger  ok\n' })
  expect(result.stderr).toMatch(/^error: the server is degraded/)
})
