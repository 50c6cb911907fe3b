import { expect, test } from 'vitest'
import { adjustableClock, describeOnBoth, type CallOptions } from '../support/memory-api.ts'
import {
  aTime,
  expectError,
  expectInvalid,
  expectNoEntry,
  expectOk,
  ledgerOf,
  readPages,
} from '../support/expectations.ts'
import { startServer } from '../support/server.ts'
import { proofHash, vendorAgentId } from '../support/vendor-session.ts'

const clock = adjustableClock()
const encoded = (proof: unknown): string => Buffer.from(JSON.stringify(proof)).toString('base64url')

describeOnBoth(
  'agents',
  (api) => {
    const agents = (ws: string, id = ''): string =>
      `/workspaces/${ws}/agents${id === '' ? '' : `/${encodeURIComponent(id)}`}`
    const read = async (ws: string, id: string) => expectOk(await api().call('GET', agents(ws, id)))
    const write = (ws: string, agent: string | null, headers: Record<string, string> = {}) =>
      api().call('POST', `/workspaces/${ws}/memories`, { content: 'x' }, { agent, headers })
    const register = (ws: string, body: object, options: CallOptions = { agent: null }) =>
      api().call('POST', agents(ws), body, options)

    test('memory#99 write without agent: 400; recall, pin, workspace routes need none', async () => {
      const ws = await api().workspace()
      const id = await api().imprint(ws, 'x')
      const W = `/workspaces/${ws}`
      const M = `${W}/memories/${id}`
      const anonymous = { agent: null }
      const needing: [method: string, path: string, body?: object][] = [
        ['POST', `${W}/memories`, { content: 'x' }],
        ['PUT', M, { content: 'x' }],
        ['PATCH', M, { patch: [] }],
        ['POST', `${M}:append`, { content: 'x' }],
        ['DELETE', M],
        ['PUT', `${M}/tags/a`, { value: 'x' }],
        ['POST', `${M}/tags/a`, { value: 'x' }],
        ['DELETE', `${M}/tags/a`],
        ['POST', `${M}/edges`, {}],
        ['POST', `${W}/edges/:batch`, {}],
        ['DELETE', `${W}/edges/x`],
        ['POST', `${W}/graph/neighbors`, {}],
        ['POST', `${W}/graph/traverse`, {}],
        ['POST', '/workspaces/nope/memories', { content: 'x' }],
      ]
      await expectNoEntry(api(), ws, async () => {
        for (const [method, path, body] of needing) {
          for (const options of [anonymous, { agent: '' }]) {
            const reply = await api().call(method, path, body, options)
            expectError(reply, 400, 'missing_agent_id')
            expect(reply.body.details).toEqual({})
          }
        }
        for (const agent of ['x'.repeat(201), 'tab\there', '\u00e9']) {
          expectInvalid(await write(ws, agent), 'Mem-Agent-Id')
        }
      })
      expectOk(await api().call('POST', `${W}/recall`, { query: 'x' }, anonymous))
      const pin = expectOk(await api().call('POST', `${W}/recall/pins`, { query: 'x' }, anonymous), 201).pin_id
      expect(expectOk(await api().call('GET', `${W}/recall/pins`)).pins[0]).not.toHaveProperty('created_by')
      expectOk(await api().call('DELETE', `${W}/recall/pins/${pin}`, undefined, anonymous), 204)
      expectOk(await api().call('PUT', W, { name: 'x' }, anonymous))
      const collection = expectOk(await api().call('POST', `${W}/collections`, { name: 'c' }, anonymous), 201).id
      expectOk(await api().call('DELETE', `${W}/collections/${collection}`, undefined, anonymous), 204)
      const entries = await ledgerOf(
        api(),
        ws,
        'op=pin_create,pin_delete,workspace_update,collection_create,collection_delete',
      )
      expect(entries.map(({ agent_id }) => agent_id)).toEqual(Array.from({ length: 5 }, () => 'agent_system'))
      for (const agent of ['any id at all', 'user@example.org:7', 'x'.repeat(200)])
        expectOk(await write(ws, agent), 201)
      const utf8 = Buffer.from('агент 🤖').toString('latin1')
      expect(expectOk(await write(ws, utf8), 201).written_by_agent_id).toBe('агент 🤖')
    })

    test('memory#100 first write registers, even when it ends 412; later writes keep the profile', async () => {
      const ws = await api().workspace()
      const id = await api().imprint(ws, 'x')
      const update = (agent: string) =>
        api().call('PUT', `/workspaces/${ws}/memories/${id}`, { content: 'y', expected_watermark: 'old' }, { agent })
      expectError(await update('agent_late'), 412, 'cas_conflict')
      const agent = await read(ws, 'agent_late')
      expect(agent).toEqual({
        agent_id: 'agent_late',
        workspace_id: ws,
        identity_provider: 'opaque',
        registered_at: aTime,
        last_seen_at: aTime,
        active: true,
      })
      expect(await ledgerOf(api(), ws, 'agent_id=agent_late')).toMatchObject([
        { op: 'agent_register', target: 'agent_late', metadata: { auto: true } },
      ])
      for (const [other, raw] of [
        ['agent_bad_body', '{'],
        ['agent_bad_field', '{"nope": 1}'],
      ] as const) {
        const reply = await api().call('POST', `/workspaces/${ws}/memories`, undefined, { raw, agent: other })
        expectError(reply, 400, 'invalid_input')
        expect((await read(ws, other)).active).toBe(true)
      }
      expectError(
        await api().call('POST', '/workspaces/nope/memories', {}, { agent: 'agent_nowhere' }),
        404,
        'not_found',
      )

      const profile = {
        agent_id: 'agent_late',
        identity_provider: 'opaque',
        display_name: 'Late',
        capabilities: { a: 1 },
      }
      expectOk(await register(ws, profile), 201)
      clock.advance(60_000)
      expectOk(await write(ws, 'agent_late'), 201)
      const seen = await read(ws, 'agent_late')
      expect(seen).toMatchObject({ ...profile, registered_at: agent.registered_at })
      expect(seen.last_seen_at > agent.last_seen_at).toBe(true)
      const race = await Promise.all(Array.from({ length: 8 }, () => write(ws, 'agent_race')))
      for (const reply of race) expectOk(reply, 201)
      expect(await ledgerOf(api(), ws, 'agent_id=agent_race&op=agent_register')).toHaveLength(1)
      expectOk(await api().call('GET', `/workspaces/${ws}/memories`, undefined, { agent: 'agent_reader' }))
      expectError(await api().call('GET', agents(ws, 'agent_reader')), 404, 'not_found')
    })

    test('memory#101 register: 201; no agent_ prefix: 400; repeat replaces and activates', async () => {
      const ws = await api().workspace()
      const full = {
        agent_id: 'agent_é/@:% 😀',
        identity_provider: 'opaque',
        display_name: 'Die Größte',
        identity_proof: { b: { x: [1] }, a: 'é' },
        agent_type: 'assistant',
        model: 'm-1',
        capabilities: { tools: ['a'], none: null },
      }
      const { identity_proof, ...profile } = full
      const made = expectOk(await register(ws, full), 201)
      expect(made).toEqual({
        ...profile,
        workspace_id: ws,
        identity_proof_hash: proofHash(identity_proof),
        registered_at: aTime,
        active: true,
      })
      expectInvalid(await register(ws, { ...full, agent_id: 'agent_\n' }), 'agent_id')
      expect(await read(ws, full.agent_id)).toEqual(made)
      expect(await ledgerOf(api(), ws, 'op=agent_register&agent_id=agent_system')).toMatchObject([
        { target: full.agent_id, metadata: { auto: false } },
      ])
      expectOk(await api().call('DELETE', agents(ws, full.agent_id)), 204)
      clock.advance(5000)
      const { display_name: _, capabilities: _c, model: _m, ...smaller } = profile
      const again = expectOk(await register(ws, smaller), 201)
      expect(again).toEqual({ ...smaller, workspace_id: ws, registered_at: made.registered_at, active: true })

      await expectNoEntry(api(), ws, async () => {
        const good = { agent_id: 'agent_x', identity_provider: 'opaque' }
        const bad: [field: string, value: unknown][] = [
          ...['x', '', 'Agent_x', 'my_agent_x', null, 1, `agent_${'x'.repeat(195)}`, undefined].map(
            (value): [string, unknown] => ['agent_id', value],
          ),
          ...[undefined, null, 1].map((value): [string, unknown] => ['identity_provider', value]),
          ['display_name', 'x'.repeat(201)],
          ['display_name', null],
          ['agent_type', 1],
          ['model', 'x'.repeat(201)],
          ['capabilities', ['a']],
          ['capabilities', null],
          ['capabilities', { text: 'x'.repeat(65_536) }],
          ['identity_proof', 'x'],
          ['identity_proof', null],
          ['active', false],
          ['identity_proof_hash', 'x'],
        ]
        for (const [field, value] of bad) expectInvalid(await register(ws, { ...good, [field]: value }), field)
      })
      expectError(await api().call('GET', agents(ws, 'agent_x')), 404, 'not_found')
    })

    test('memory#102 list, read: 200; unknown: 404', async () => {
      const ws: string = expectOk(await api().call('POST', '/workspaces', { name: 'x' }, { agent: null }), 201).id
      const made: string[] = []
      for (let i = 0; i < 5; i++) {
        clock.advance(5)
        made.push(expectOk(await register(ws, { agent_id: `agent_${i}`, identity_provider: 'opaque' }), 201).agent_id)
      }
      const list = expectOk(await api().call('GET', agents(ws)))
      expect(Object.keys(list)).toEqual(['agents'])
      const ids = list.agents.map(({ agent_id }: { agent_id: string }) => agent_id)
      expect(ids.slice(0, 5)).toEqual(made.toReversed())
      expect(ids.slice(5).toSorted()).toEqual(['agent_system', 'agent_system_auto_link'])
      for (const reserved of list.agents.slice(5)) {
        expect(reserved).toMatchObject({
          identity_provider: 'opaque',
          active: true,
          workspace_id: ws,
          registered_at: aTime,
        })
      }
      expect(await readPages(api(), agents(ws), 'agents', 2)).toEqual(list.agents)
      for (const agent of list.agents) expect(await read(ws, agent.agent_id)).toEqual(agent)
      expectInvalid(await api().call('GET', `${agents(ws)}?cursor=x`), 'cursor')
      for (const id of ['agent_unknown', 'AGENT_0', 'x']) {
        expectError(await api().call('GET', agents(ws, id)), 404, 'not_found', { resource: 'agent', id })
      }
    })

    test('memory#103 DELETE: 204, active false; its write: 201, still inactive', async () => {
      const ws = await api().workspace()
      expectOk(await write(ws, 'agent_gone'), 201)
      expectOk(await api().call('DELETE', agents(ws, 'agent_gone'), undefined, { agent: null }), 204)
      expect((await read(ws, 'agent_gone')).active).toBe(false)
      expect(await ledgerOf(api(), ws, 'op=agent_deactivate')).toMatchObject([
        { target: 'agent_gone', agent_id: 'agent_system' },
      ])
      expectOk(await api().call('DELETE', agents(ws, 'agent_gone')), 204)
      expectOk(await write(ws, 'agent_gone'), 201)
      expect((await read(ws, 'agent_gone')).active).toBe(false)
      expect(expectOk(await api().call('GET', agents(ws))).agents).toHaveLength(4)
      expectError(await api().call('DELETE', agents(ws, 'agent_unknown')), 404, 'not_found', {
        resource: 'agent',
        id: 'agent_unknown',
      })
      for (const id of ['agent_system', 'agent_system_auto_link']) {
        expectError(await api().call('DELETE', agents(ws, id)), 400, 'invalid_input')
        expect((await read(ws, id)).active).toBe(true)
      }
    })

    test('memory#105 reserved writer: 401; reserved registration: 409', async () => {
      const ws = await api().workspace()
      await expectNoEntry(api(), ws, async () => {
        for (const agent of ['agent_system', 'agent_system_auto_link']) {
          expectError(await write(ws, agent), 401, 'agent_verification_failed', { provider: 'opaque' })
          const pin = await api().call('POST', `/workspaces/${ws}/recall/pins`, { query: 'x' }, { agent })
          expectError(pin, 401, 'agent_verification_failed')
          const body = { agent_id: agent, identity_provider: 'opaque', display_name: 'mine' }
          expectError(await register(ws, body), 409, 'already_exists', { id: agent })
        }
      })
    })

    test('memory#106 unknown provider name acts as opaque', async () => {
      const ws = await api().workspace()
      for (const provider of ['nope', '', 'VENDOR_SESSION', 'opaque', 'constructor']) {
        const agent = `agent_by_${provider}`
        expectOk(
          await write(ws, agent, { 'Mem-Identity-Provider': provider, 'Mem-Identity-Proof': encoded({ a: 1 }) }),
          201,
        )
        expect(await read(ws, agent)).toMatchObject({
          identity_provider: 'opaque',
          identity_proof_hash: proofHash({ a: 1 }),
        })
      }
      const body = { agent_id: 'agent_registered', identity_provider: 'whatever', identity_proof: { token: 't' } }
      expect(expectOk(await register(ws, body), 201).identity_provider).toBe('opaque')
      const reserved = await write(ws, 'agent_system', { 'Mem-Identity-Provider': 'nope' })
      expectError(reserved, 401, 'agent_verification_failed', { provider: 'opaque' })
      for (const proof of ['!!!', 'e30!', encoded([]), encoded('x'), encoded(null), 'bm90IGpzb24', '', '%7B%7D']) {
        const reply = await write(ws, 'agent_undecodable', { 'Mem-Identity-Proof': proof })
        expectError(reply, 401, 'agent_verification_failed', { provider: 'opaque' })
      }
      expectError(await api().call('GET', agents(ws, 'agent_undecodable')), 404, 'not_found')
    })

    test('memory#107 vendor_session good proof: 201; none, broken, mismatch: 401, unregistered; proof in no answer', async () => {
      const ws = await api().workspace()
      const proof = { session_id: 'séance-1', model: 'model-1', system_prompt: 'You are the secret prompt.' }
      const id = vendorAgentId(proof.session_id, proof.model, proof.system_prompt)
      const headers = (sent: unknown) => ({
        'Mem-Identity-Provider': 'vendor_session',
        ...(sent !== undefined && { 'Mem-Identity-Proof': typeof sent === 'string' ? sent : encoded(sent) }),
      })
      const { system_prompt: _, ...withoutPrompt } = proof
      const bad: unknown[] = [
        undefined,
        '',
        '!!!',
        'bm90IGpzb24',
        [],
        {},
        withoutPrompt,
        { ...proof, session_id: 'another' },
        { ...proof, model: undefined },
        { ...proof, model: 1 },
        { ...proof, system_prompt: null },
      ]
      await expectNoEntry(api(), ws, async () => {
        for (const sent of bad) {
          const reply = await write(ws, id, headers(sent))
          expectError(reply, 401, 'agent_verification_failed', { provider: 'vendor_session' })
          expect(JSON.stringify(reply.body)).not.toContain('séance')
        }
        const other = await write(ws, 'agent_vendor_session_aaaaaaaaaaaaaaaa', headers(proof))
        expectError(other, 401, 'agent_verification_failed', { provider: 'vendor_session' })
        for (const identity_proof of [undefined, { session_id: 'x', model: 'y' }]) {
          const reply = await register(ws, { agent_id: id, identity_provider: 'vendor_session', identity_proof })
          expectError(reply, 401, 'agent_verification_failed', { provider: 'vendor_session' })
        }
      })
      expectError(await api().call('GET', agents(ws, id)), 404, 'not_found')

      const answers = [
        expectOk(await write(ws, id, headers(proof)), 201),
        await read(ws, id),
        expectOk(await register(ws, { agent_id: id, identity_provider: 'vendor_session', identity_proof: proof }), 201),
        expectOk(await api().call('GET', agents(ws))),
        await ledgerOf(api(), ws),
      ]
      expect(answers[1]).toMatchObject({ identity_provider: 'vendor_session', identity_proof_hash: proofHash(proof) })
      for (const answer of answers) expect(JSON.stringify(answer)).not.toMatch(/séance|secret prompt/)
      expectOk(await write(ws, id.toUpperCase().replace('AGENT_', 'agent_'), headers(proof)), 201)
      const bare = { session_id: 's', model: 'm' }
      expectOk(await write(ws, vendorAgentId('s', 'm'), headers(bare)), 201)
      expectOk(await write(ws, vendorAgentId('s', 'm'), headers({ ...bare, system_prompt: '', extra: [1] })), 201)
    })
  },
  { clock },
)

describeOnBoth(
  'inactive agents',
  (api) => {
    test('memory#104 with reject_inactive_agents that write: 401 agent_verification_failed', async () => {
      const ws = await api().workspace()
      const path = `/workspaces/${ws}/memories`
      const write = () => api().call('POST', path, { content: 'x' }, { agent: 'agent_gone' })
      expectOk(await write(), 201)
      expectOk(await api().call('DELETE', `/workspaces/${ws}/agents/agent_gone`), 204)
      await expectNoEntry(api(), ws, async () => {
        expectError(await write(), 401, 'agent_verification_failed', { provider: 'opaque' })
      })
      expect(expectOk(await api().call('GET', path)).memories).toHaveLength(1)
      const profile = { agent_id: 'agent_gone', identity_provider: 'opaque' }
      expectOk(await api().call('POST', `/workspaces/${ws}/agents`, profile, { agent: null }), 201)
      expectOk(await write(), 201)
    })
  },
  { file: 'server: {reject_inactive_agents: true}' },
)

test('memory#107 an identity proof is in no log', async () => {
  const server = await startServer({ env: { MEM_AGENT_ID: '' } })
  const create = await fetch(`${server.url}/v1/workspaces`, { method: 'POST', body: '{"name": "x"}' })
  const ws = String(Reflect.get(Object(await create.json()), 'id'))
  const proof = { session_id: 'séance-1', model: 'model-1', system_prompt: 'You are the secret prompt.' }
  const identify = (agent: string) => ({
    'Mem-Agent-Id': agent,
    'Mem-Identity-Provider': 'vendor_session',
    'Mem-Identity-Proof': encoded(proof),
  })
  const statuses: number[] = []
  for (const agent of [vendorAgentId(proof.session_id, proof.model, proof.system_prompt), 'agent_other']) {
    const url = `${server.url}/v1/workspaces/${ws}/memories`
    const reply = await fetch(url, { method: 'POST', body: '{"content": "x"}', headers: identify(agent) })
    statuses.push(reply.status)
  }
  await server.stop()
  expect(statuses).toEqual([201, 401])
  const log = server.output()
  expect(log.match(/"status":(201|401)/g)).toHaveLength(3)
  for (const secret of ['séance', 'secret prompt', encoded(proof), encoded(proof).slice(0, 20)]) {
    expect(log).not.toContain(secret)
  }
})
