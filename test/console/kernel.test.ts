import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { BY_KERNEL, makeChange } from '../../src/kernel/change.ts'
import type { Scope } from '../../src/kernel/model/fields.ts'
import { approvals, insertApproval } from '../../src/kernel/store/approvals.ts'
import { calls } from '../../src/kernel/store/calls.ts'
import { appendEvents } from '../../src/kernel/store/events.ts'
import { insertRecord, readRecord } from '../../src/kernel/store/records.ts'
import { insertRun, runs } from '../../src/kernel/store/runs.ts'
import { newSqliteStore, type KernelStore } from '../../src/kernel/store/store.ts'
import { turns } from '../../src/kernel/store/turns.ts'
import { BY_USER, deploymentOf, manifestOf } from '../kernel/registry-support.ts'
import { approvalOf, callOf, contextOf, eventOf, fixture, runOf, turnOf } from '../kernel/support.ts'
import { startMemoryApi, type MemoryApi } from '../support/memory-api.ts'
import { createClient, signIn } from './console-client.ts'

const SCRIPT = `<script>alert('x')</script>"'><img src=x onerror=alert(1)>`
const scope: Scope = { kind: 'local', id: 'default' }
const open = fixture({ now: Date.now, advance: () => {} })

let api: MemoryApi
let store: KernelStore

beforeAll(async () => {
  api = await startMemoryApi({ dialect: 'sqlite', flags: { 'standalone-operator': true } })
  store = await newSqliteStore(join(api.dataDir, 'kernel.db'))
})
afterAll(async () => {
  await store.close()
  await api.stop()
})

/** A run that made a turn and waits for leave to do what that proposed. */
async function waitingRun(goal: string): Promise<{ runId: string; approvalId: string }> {
  const { result } = await makeChange(contextOf({ store, newId: open.newId }), scope, BY_KERNEL, async ({ tx }) => {
    const run = runOf(open, {
      scope,
      goal,
      status: 'waiting_for_approval',
      wakeCondition: { type: 'approval', reference: 'later' },
      lastAppliedTurn: 1,
      budget: { maxTurns: 5, maxActions: 2 },
      budgetUsage: { turns: 1, inputTokens: 1200, outputTokens: 80, actions: 1 },
    })
    await insertRun(tx, run)
    await insertRecord(
      tx,
      turns,
      turnOf(open, { scope, runId: run.id, status: 'completed', outputSummary: goal, model: goal }),
    )
    const call = callOf(open, { scope, runId: run.id, status: 'waiting_for_approval', arguments: { note: goal } })
    await insertRecord(tx, calls, call)
    const approval = approvalOf(open, {
      scope,
      runId: run.id,
      actionCallId: call.id,
      summary: goal,
      eligibleApprovers: [{ type: 'user', id: 'local' }],
    })
    await insertApproval(tx, approval, run.owner)
    return { runId: run.id, approvalId: approval.id }
  })
  return result
}

/** An objective that says the same everywhere. */
async function objectiveOf(text: string): Promise<string> {
  const { status, body } = await api.call('POST', '//api/v1/objectives?scopeKind=local&scopeId=default', {
    owner: { type: 'agent', id: 'ana' },
    title: text,
    goal: text,
    constraints: { text },
    successCriteria: [text],
    progressSummary: text,
    budget: { maxTurns: 3 },
  })
  expect(status).toBe(201)
  return body.id
}

test('each page of the kernel renders, and a stored <script> is inert on all of them', async () => {
  const { runId } = await waitingRun(SCRIPT)
  const objectiveId = await objectiveOf(SCRIPT)
  for (const path of [
    '/ui/kernel/objectives',
    '/ui/kernel/objectives?status=draft',
    `/ui/kernel/objectives/${objectiveId}`,
    '/ui/api/kernel/approvals',
    '/ui/kernel/runs',
    `/ui/kernel/runs?status=waiting_for_approval&q=${encodeURIComponent(SCRIPT)}`,
    `/ui/kernel/runs/${runId}`,
    `/ui/api/kernel/runs/${runId}?scope=local%3Adefault`,
    '/ui/kernel/approvals',
    '/ui/kernel/approvals?status=approved',
    '/ui/kernel/activity',
    `/ui/kernel/activity?runId=${runId}&severity=info`,
    '/ui/kernel/deployments?scope=team:red',
  ]) {
    const { status, text } = await createClient(api.url).get(path)
    expect([path, status]).toEqual([path, 200])
    expect([path, text.includes('<script>alert'), text.includes('<img src=x')]).toEqual([path, false, false])
    expect(text.length).toBeLessThan(200_000)
  }
  expect((await createClient(api.url).get('/ui/kernel')).status).toBe(303)
})

test('the page of a run says why it sleeps, and what was refused', async () => {
  const run = runOf(open, { scope, status: 'sleeping', wakeCondition: { type: 'timer' }, lastAppliedTurn: 1 })
  await makeChange(contextOf({ store, newId: open.newId }), scope, BY_KERNEL, async ({ tx }) => {
    await insertRun(tx, run)
    const [refused, down] = [
      { code: 'refused', message: 'text must be string' },
      { code: 'model_unavailable', message: 'it answered 503' },
    ]
    await insertRecord(tx, turns, turnOf(open, { scope, runId: run.id, status: 'completed', error: refused }))
    await insertRecord(tx, turns, turnOf(open, { scope, runId: run.id, sequence: 2, status: 'running', error: down }))
    const event = {
      eventType: 'turn.failed',
      summary: 'internal error: see the log',
      payload: { code: 'internal_error' },
    }
    await appendEvents(tx, [eventOf(open, { scope, runId: run.id, ...event })])
  })
  const { text } = await createClient(api.url).get(`/ui/kernel/runs/${run.id}`)
  expect(text).toContain('Refused: text must be string')
  expect(text).toContain('The model did not answer: it answered 503')
  expect(text).toContain('internal error: see the log')
})

test('the page of a long run shows its latest calls and what is still pending', async () => {
  const run = runOf(open, { scope, status: 'waiting_for_approval', lastAppliedTurn: 150, goal: 'Go \u202eback' })
  await makeChange(contextOf({ store, newId: open.newId }), scope, BY_KERNEL, async ({ tx }) => {
    await insertRun(tx, run)
    for (let i = 1; i <= 150; i++) {
      const of = { scope, runId: run.id, createdAt: new Date(1_800_000_000_000 + i).toISOString() }
      await insertRecord(
        tx,
        turns,
        turnOf(open, { ...of, sequence: i, status: 'completed', outputSummary: `turn${i}.` }),
      )
      const call = callOf(open, { ...of, idempotencyKey: `${i}`, arguments: { note: `note${i}.` } })
      await insertRecord(tx, calls, call)
      const status = i === 150 ? 'pending' : 'approved'
      const approval = approvalOf(open, { ...of, actionCallId: call.id, status, summary: `wish${i}` })
      await insertApproval(tx, approval, run.owner)
    }
  })
  const { text } = await createClient(api.url).get(`/ui/kernel/runs/${run.id}`)
  expect(text).toContain('The first 50 turns are in')
  expect([text.includes('turn50.'), text.includes('turn51.'), text.includes('turn150.')]).toEqual([false, true, true])
  expect([text.includes('note50.'), text.includes('note51.'), text.includes('note150.')]).toEqual([false, true, true])
  expect(text).toContain('Waits for a decision: wish150')
  // A text that would read backwards shows what turns it.
  expect([text.includes('Go \\u202eback'), text.includes('\u202e')]).toEqual([true, false])
})

test('deployments go page by page', async () => {
  const client = createClient(api.url)
  for (let i = 0; i < 53; i++) {
    const { status } = await api.call(
      'POST',
      '//api/v1/agent-installations?scopeKind=many&scopeId=agents',
      { ...BY_USER, manifest: manifestOf({ id: `a${i + 100}` }), deployment: deploymentOf({ id: `a${i + 100}` }) },
      { headers: { 'Idempotency-Key': `a${i}` } },
    )
    expect(status).toBe(201)
  }
  const shown = (text: string): string[] => [...text.matchAll(/id="d-(a\d+)"/g)].map(([, id]) => id ?? '')
  const first = (await client.get('/ui/kernel/deployments?scope=many:agents')).text
  expect([shown(first).length, shown(first)[0]]).toEqual([50, 'a100'])
  const next = /href="(\/ui\/kernel\/deployments[^"]*offset=50)"/.exec(first)?.[1]?.replaceAll('&amp;', '&') ?? ''
  expect(shown((await client.get(next)).text)).toEqual(['a150', 'a151', 'a152'])
  expect((await client.get('/ui/kernel/deployments?offset=-1')).status).toBe(400)
})

test('a person approves in the inbox, once; what was decided cannot be decided again', async () => {
  const { approvalId } = await waitingRun('send the letter')
  const client = createClient(api.url)
  const inbox = await client.get('/ui/kernel/approvals')
  expect(inbox.text).toContain('send the letter')
  const form = {
    scope: 'local:default',
    approval_id: approvalId,
    expected_revision: '1',
    principal: 'user:local',
    decision: 'approve',
  }
  expect(
    (await client.post('/ui/api/kernel/approvals/decide', { ...form, principal: 'user:other', operation: 'o1' }))
      .status,
  ).toBe(403)
  expect((await client.post('/ui/api/kernel/approvals/decide', { ...form, operation: 'o2' })).status).toBe(303)
  expect((await client.post('/ui/api/kernel/approvals/decide', { ...form, operation: 'o2' })).status).toBe(303)
  expect((await client.post('/ui/api/kernel/approvals/decide', { ...form, operation: 'o3' })).status).toBe(409)
  const { status, decisionBy } = await readRecord(store.database, approvals, scope, approvalId)
  expect([status, decisionBy]).toEqual(['approved', { type: 'user', id: 'local' }])
})

test('a run is created, paused, resumed, guided and canceled; each page tells the next revision', async () => {
  const client = createClient(api.url)
  const created = await client.post('/ui/api/kernel/runs/create', {
    scope: 'local:default',
    goal: 'water the plants',
    agent_id: 'ana',
    operation: 'once',
  })
  expect(created.status).toBe(303)
  const list = await client.get('/ui/kernel/runs?q=water')
  const [, id = ''] = /\/ui\/kernel\/runs\/([0-9a-f-]{36})/.exec(list.text) ?? []
  for (const [kind, status] of [
    ['pause', 'paused'],
    ['resume', 'queued'],
    ['intervene', 'queued'],
    ['cancel', 'canceled'],
  ] as const) {
    const page = await client.get(`/ui/kernel/runs/${id}`)
    const [, revision] = /name="expected_revision" value="(\d+)"/.exec(page.text) ?? []
    const answer = await client.post('/ui/api/kernel/runs/command', {
      scope: 'local:default',
      run_id: id,
      kind,
      expected_revision: revision,
      operation: kind,
      ...(kind === 'intervene' && { instruction: 'not the cactus' }),
    })
    expect([kind, answer.status]).toEqual([kind, 303])
    expect((await readRecord(store.database, runs, scope, id)).status).toBe(status)
  }
  expect((await client.get(`/ui/kernel/runs/${id}`)).text).toContain('run.canceled')
})

test('bad input, other scopes and forms without their token are refused', async () => {
  const { runId } = await waitingRun('keep away')
  const client = createClient(api.url)
  expect((await client.get('/ui/kernel/runs?status=odd')).status).toBe(400)
  expect((await client.get('/ui/kernel/runs?scope=odd')).status).toBe(400)
  expect((await client.get('/ui/kernel/runs?cursor=odd.odd')).status).toBe(400)
  expect((await client.get(`/ui/kernel/runs/${runId}?scope=team:red`)).status).toBe(404)
  const fields = { scope: 'local:default', run_id: runId, kind: 'cancel', expected_revision: '1' }
  expect((await client.post('/ui/api/kernel/runs/command', { ...fields, csrf_token: 'odd' })).status).toBe(403)
  expect((await client.post('/ui/api/kernel/runs/command', { ...fields, expected_revision: '7' })).status).toBe(409)
})

test('a listener with a key shows the pages of the kernel to who signed in', async () => {
  const keyed = await startMemoryApi({ dialect: 'sqlite', env: { MEM_API_KEY: 'key-for-tests' } })
  try {
    const visitor = await createClient(keyed.url).get('/ui/kernel/runs')
    expect([visitor.status, visitor.headers.get('location')]).toEqual([303, '/ui/login'])
    expect((await (await signIn(keyed.url, 'key-for-tests')).get('/ui/kernel/runs')).status).toBe(200)
  } finally {
    await keyed.stop()
  }
})
