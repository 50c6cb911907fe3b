import { beforeAll, expect, test } from 'vitest'
import { describeOnBoth } from '../support/memory-api.ts'
import { createClient, type ConsoleClient, type Fields } from './console-client.ts'

describeOnBoth('actions', (api) => {
  let client: ConsoleClient
  let ws: string
  beforeAll(async () => {
    client = createClient(api().url)
    ws = await api().workspace()
  })
  const act = (action: string, fields: Fields) => client.post(`/ui/api/${action}`, { workspace_id: ws, ...fields })
  const memory = async (id: string) => (await api().call('GET', `/workspaces/${ws}/memories/${id}`)).body
  /** The newest ledger entry. */
  const last = async (workspace = ws) =>
    (await api().call('GET', `/workspaces/${workspace}/ledger?limit=1`)).body.entries[0]
  const expectEntry = async (op: string, target: string, workspace = ws): Promise<void> => {
    expect(await last(workspace)).toMatchObject({ op, target, agent_id: 'ui-admin', user_id: 'console' })
  }

  test('memory#154 workspaces: create, update, config, delete', async () => {
    const made = await client.post('/ui/api/workspaces/create', {
      name: 'Made here',
      region: 'eu',
      chunker_id: 'markdown',
    })
    expect(made.status).toBe(303)
    const id = /ws_\w+/.exec(made.headers.get('location') ?? '')?.[0] ?? ''
    await expectEntry('workspace_create', id, id)
    const read = async () => (await api().call('GET', `/workspaces/${id}`)).body

    const update = { workspace_id: id, name: 'Renamed', region: '', meta: '{"team": "a"}' }
    expect((await client.post('/ui/api/workspaces/update', update)).status).toBe(303)
    expect(await read()).toMatchObject({ name: 'Renamed', meta: { team: 'a' }, chunker_id: 'markdown' })
    expect(await read()).not.toHaveProperty('region')
    await expectEntry('workspace_update', id, id)

    const config = { workspace_id: id, auto_link_enabled: 'true', auto_link_threshold: '0.5', chunker_id: '' }
    expect((await client.post('/ui/api/workspaces/config', config)).status).toBe(303)
    expect(await read()).toMatchObject({ name: 'Renamed', auto_link_enabled: true, auto_link_threshold: 0.5 })
    expect(await read()).not.toHaveProperty('chunker_id')
    expect(
      (await client.post('/ui/api/workspaces/config', { workspace_id: id, auto_link_threshold: '0' })).status,
    ).toBe(400)

    const wrong = await client.post('/ui/api/workspaces/delete', { workspace_id: id, confirm: 'Renamed' })
    expect([wrong.status, (await read()).id]).toEqual([400, id])
    expect((await client.post('/ui/api/workspaces/delete', { workspace_id: id, confirm: id })).status).toBe(303)
    expect((await api().call('GET', `/workspaces/${id}`)).status).toBe(404)
    expect((await client.get(`/ui/audit?ws=${id}`)).text).toContain('workspace delete')
  })

  test('memory#154 collections, agents, pins', async () => {
    expect((await act('collections/create', { name: 'Letters' })).status).toBe(303)
    const [collection] = (await api().call('GET', `/workspaces/${ws}/collections`)).body.collections
    await expectEntry('collection_create', collection.id)
    expect((await act('collections/create', { name: 'Letters' })).status).toBe(409)
    expect((await act('collections/delete', { collection_id: collection.id, confirm: 'x' })).status).toBe(400)
    expect((await act('collections/delete', { collection_id: collection.id, confirm: collection.id })).status).toBe(303)
    await expectEntry('collection_delete', collection.id)

    const agent = { agent_id: 'agent_a', display_name: 'Agent A', capabilities: '{"tools": ["x"]}' }
    expect((await act('agents/register', agent)).status).toBe(303)
    await expectEntry('agent_register', 'agent_a')
    expect((await act('agents/register', { agent_id: 'nobody' })).status).toBe(400)
    expect((await act('agents/deactivate', { agent_id: 'agent_a', confirm: 'agent_a' })).status).toBe(303)
    await expectEntry('agent_deactivate', 'agent_a')
    expect((await act('agents/deactivate', { agent_id: 'agent_system', confirm: 'agent_system' })).status).toBe(400)

    expect((await act('pins/create', { query: 'what?', k: '3', mode: 'keyword', label: 'W' })).status).toBe(303)
    const [pin] = (await api().call('GET', `/workspaces/${ws}/recall/pins`)).body.pins
    expect(pin).toMatchObject({ query: 'what?', k: 3, mode: 'keyword', label: 'W', created_by: 'ui-admin' })
    expect((await client.get(`/ui/workspaces/${ws}`)).text).toContain('q=what%3F&amp;mode=keyword&amp;k=3')
    expect((await act('pins/delete', { pin_id: pin.pin_id, confirm: 'x' })).status).toBe(400)
    expect((await act('pins/delete', { pin_id: pin.pin_id, confirm: pin.pin_id })).status).toBe(303)
    await expectEntry('pin_delete', pin.pin_id)
  })

  test('memory#154 Memories: imprint, update, patch, append, restore, forget', async () => {
    const made = await act('memories/imprint', {
      content: 'One line.\r\nTwo.',
      tags: 'a=1\nb=x=y',
      chunker_id: 'no-chunk',
    })
    expect(made.status).toBe(303)
    const id = /mem_\w+/.exec(made.headers.get('location') ?? '')?.[0] ?? ''
    await expectEntry('imprint', id)
    const first = await memory(id)
    expect(first).toMatchObject({
      content: 'One line.\nTwo.',
      tags: { a: '1', b: 'x=y' },
      written_by_agent_id: 'ui-admin',
    })

    const at = (watermark: string) => ({ memory_id: id, expected_watermark: watermark })
    expect((await act('memories/update', { ...at(first.head_watermark), content: 'Other.' })).status).toBe(303)
    await expectEntry('update', id)
    const stale = await act('memories/update', { ...at(first.head_watermark), content: 'Lost?' })
    expect([stale.status, stale.text.includes('cas_conflict')]).toEqual([412, true])
    expect((await act('memories/update', { memory_id: id, content: 'x' })).status).toBe(400)

    const head = async () => (await memory(id)).head_watermark
    expect(
      (await act('memories/patch', { ...at(await head()), old_string: 'Other', new_string: 'Another' })).status,
    ).toBe(303)
    await expectEntry('patch', id)
    expect((await act('memories/patch', { ...at(await head()), old_string: 'absent', new_string: '' })).status).toBe(
      400,
    )
    const list = JSON.stringify([{ old_string: 'Another', new_string: 'A' }])
    expect((await act('memories/patch', { ...at(await head()), patch: list })).status).toBe(303)
    expect((await act('memories/append', { ...at(await head()), content: ' More.' })).status).toBe(303)
    await expectEntry('append', id)
    expect((await memory(id)).content).toBe('A. More.')

    expect((await act('memories/restore', { memory_id: id, watermark: first.head_watermark })).status).toBe(303)
    expect(await memory(id)).toMatchObject({ content: 'One line.\nTwo.', tags: { a: '1' } })
    await expectEntry('update', id)

    expect((await act('memories/forget', { memory_id: id, confirm: 'x' })).status).toBe(400)
    expect((await act('memories/forget', { memory_id: id, confirm: id, redact_audit: 'on' })).status).toBe(303)
    expect(await last()).toMatchObject({ op: 'forget', target: id, redacted: true })
    expect((await act('memories/forget', { memory_id: id, confirm: id })).status).toBe(404)
  })

  test('memory#154 tags, link, unlink', async () => {
    const [a, b] = [await api().imprint(ws, 'a'), await api().imprint(ws, 'b')]
    expect((await act('tags/upsert', { memory_id: a, key: 'k', value: 'v' })).status).toBe(303)
    await expectEntry('tag_set', a)
    expect((await memory(a)).tags).toEqual({ k: 'v' })
    expect((await act('tags/delete', { memory_id: a, key: 'k', confirm: 'x' })).status).toBe(400)
    expect((await act('tags/delete', { memory_id: a, key: 'k', confirm: 'k' })).status).toBe(303)
    await expectEntry('tag_delete', a)

    const link = { source_memory_id: a, target_memory_id: b, edge_type: 'mentions', properties_json: '{"n": 1}' }
    expect((await act('edges/link', link)).status).toBe(303)
    const { target: edge } = await last()
    await expectEntry('link', edge)
    expect((await act('edges/link', link)).status).toBe(409)
    expect((await act('edges/link', { ...link, edge_type: 'vector_neighbor' })).status).toBe(400)
    expect((await act('edges/unlink', { edge_id: edge, confirm: 'x' })).status).toBe(400)
    expect((await act('edges/unlink', { edge_id: edge, confirm: edge })).status).toBe(303)
    await expectEntry('unlink', edge)
  })

  test('an edit is reviewed as a diff before it is saved, and keeps the line ends of the Memory', async () => {
    const id = await api().imprint(ws, 'first\r\nsecond\r\nthird\r\n')
    const { head_watermark: head } = await memory(id)
    const fields = { memory_id: id, expected_watermark: head, content: 'first\r\n2nd\r\nthird\r\n' }
    const review = await act('memories/preview', { ...fields, edit: 'update' })
    expect(review.status).toBe(200)
    expect(review.text).toMatch(/<tr class="delete">.*second/)
    expect(review.text).toMatch(/<tr class="add">.*2nd/)
    expect(review.text).not.toMatch(/<tr class="(?:add|delete)">.*first/)
    expect((await memory(id)).head_watermark).toBe(head)
    await act('memories/update', fields)
    expect((await memory(id)).content).toBe('first\r\n2nd\r\nthird\r\n')
    const again = await act('memories/preview', { ...fields, edit: 'update' })
    expect([again.status, again.text.includes('Somebody changed this Memory meanwhile')]).toEqual([200, true])
    expect([again.text.includes('Nothing changes'), again.text.includes('Save this version')]).toEqual([true, false])
    expect((await act('memories/preview', { ...fields, edit: 'sing' })).status).toBe(400)
  })

  test('a refusal is a fragment for programs and a page for browsers; htmx is told where to go', async () => {
    const fragment = await act('memories/imprint', { content: 'x', collection_id: 'coll_nope' })
    expect(fragment.status).toBe(404)
    expect(fragment.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(fragment.text).not.toContain('<html')
    const page = await client.post(
      '/ui/api/memories/imprint',
      { workspace_id: ws, content: 'x', collection_id: 'coll_nope' },
      { 'upgrade-insecure-requests': '1' },
    )
    expect([page.status, page.text.includes('<html')]).toEqual([404, true])
    const done = await client.post(
      '/ui/api/memories/imprint',
      { workspace_id: ws, content: 'x' },
      { 'hx-request': 'true' },
    )
    expect([done.status, done.headers.get('hx-redirect')?.includes('/memories/mem_')]).toEqual([200, true])
  })

  test('what a form says is checked as REST checks it', async () => {
    expect((await act('memories/imprint', {})).status).toBe(400)
    expect((await act('memories/imprint', { content: 'a\0b' })).status).toBe(400)
    expect((await act('memories/imprint', { content: 'x', chunker_id: 'nope' })).status).toBe(400)
    expect((await act('memories/imprint', { content: 'x', tags: 'no equals sign' })).status).toBe(400)
    expect((await client.post('/ui/api/memories/imprint', { content: 'x' })).status).toBe(400)
    expect((await client.post('/ui/api/memories/imprint', { workspace_id: 'ws_nope', content: 'x' })).status).toBe(404)
    expect((await act('no/such', {})).status).toBe(404)
  })

  test('memory#155 .txt and .md are uploaded with the tag source_filename; other types and too much are 400', async () => {
    const upload = (name: string, bytes: string | Uint8Array<ArrayBuffer>, fields: Fields = {}) =>
      act('memories/upload', { file: new File([bytes], name), ...fields })
    for (const name of ['notes.txt', 'Päper.MD']) {
      const { status, headers } = await upload(name, '# Title\n\nText with ümlauts.\r\n', { tags: 'kind=upload' })
      expect(status).toBe(303)
      const id = /mem_\w+/.exec(headers.get('location') ?? '')?.[0] ?? ''
      expect(await memory(id)).toMatchObject({
        content: '# Title\n\nText with ümlauts.\r\n',
        tags: { source_filename: name, kind: 'upload' },
      })
    }
    const before = (await last()).seq
    expect((await upload('page.html', 'x')).status).toBe(400)
    expect((await upload('latin.txt', new Uint8Array([0xe4, 0xf6]))).status).toBe(400)
    expect((await upload('big.txt', 'x'.repeat(8 * 1024 * 1024))).status).toBe(400)
    expect((await act('memories/upload', {})).status).toBe(400)
    expect((await last()).seq).toBe(before)
  })
})
