import { existsSync, readFileSync } from 'node:fs'
import { PassThrough } from 'node:stream'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createSkillCatalog } from '../../src/kernel/actions/catalog.ts'
import { concealJson } from '../../src/kernel/actions/conceal.ts'
import { createFunctionTransport } from '../../src/kernel/actions/function-transport.ts'
import { createHttpTransport } from '../../src/kernel/actions/http-transport.ts'
import type { Reaction } from '../support/effect-server.ts'
import { ALLOWED, deskSkill, openStage, servedParts, SECRET, useDesk } from './actions-support.ts'
import { openKernel, type OpenKernel } from './api.ts'
import { bench, useModel } from './engine-support.ts'
import { describeStores, type OpenStore } from './support.ts'

const desk = useDesk()
const model = useModel()

/** Forms in which a service may send a credential back. */
const FORMS = [SECRET, encodeURIComponent(SECRET), Buffer.from(SECRET).toString('base64')]
const ECHO = { said: FORMS.join(' '), [SECRET]: [SECRET, { deep: `Bearer ${SECRET}` }] }
/** Each way in which a call can end, with the credential in the answer. */
const REACTIONS: Record<string, Reaction> = {
  'an output': { status: 200, body: ECHO },
  'an output that is no JSON': { status: 200, body: `<p>${SECRET}</p>` },
  'a redirect': { status: 302, headers: { Location: `http://127.0.0.1:1/?key=${SECRET}` } },
  'a refusal': { status: 401, body: `no such token: Bearer ${SECRET}` },
  'a refusal that is cut right there': { status: 400, body: `${'x'.repeat(500)}${SECRET}${'y'.repeat(2000)}` },
  'a refusal that is cut by the kernel': { status: 400, body: `${'x'.repeat(990)}${SECRET}` },
  'a refusal in JSON': { status: 403, body: ECHO },
  'a service that is busy': { status: 503, body: FORMS.join(',') },
  'a service that fails': { status: 500, body: ECHO },
  'a connection that breaks': { drop: 'after' },
}

const everyTable = ({ database }: OpenStore['store']): Promise<{ name: string }[]> =>
  database.all(
    database.dialect === 'sqlite'
      ? `SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'kernel%'`
      : `SELECT tablename AS name FROM pg_catalog.pg_tables WHERE tablename LIKE 'kernel%'`,
  )

/** All rows of all tables, and the bytes of the files where there are any. */
async function stored({ store, place }: OpenStore): Promise<string> {
  const rows: unknown[] = []
  for (const { name } of await everyTable(store)) rows.push(await store.database.all(`SELECT * FROM ${name}`))
  const path = store.database.location
  const files = place.driver === 'sqlite' ? [path, `${path}-wal`].filter((file) => existsSync(file)) : []
  return [JSON.stringify(rows), ...files.map((file) => readFileSync(file, 'latin1'))].join('\n')
}

/** What of these values stands in a text. */
const found = (text: string, values: readonly string[]): string[] => values.filter((value) => text.includes(value))

test('kernel#91 an output loses a credential in each form, numbers too; without one it stays as it is', () => {
  const output = { pin: 4711, list: ['x4711y', Buffer.from('4711').toString('base64'), 47, null, true] }
  expect(concealJson(output, ['4711', ''])).toEqual({
    pin: '[REDACTED]',
    list: ['x[REDACTED]y', '[REDACTED]', 47, null, true],
  })
  expect(concealJson(output, [])).toBe(output)
})

describeStores('values of credentials', (open) => {
  async function watched(parts: object): Promise<{ kernel: OpenKernel; logged(): string }> {
    const stream = new PassThrough()
    const lines: string[] = []
    stream.on('data', (chunk: Buffer) => lines.push(chunk.toString()))
    const log = pino({ level: 'trace' }, stream)
    const kernel = await openKernel(open(), { log, agents: true, ...servedParts(desk), ...parts })
    return { kernel, logged: () => lines.join('') }
  }

  test('kernel#91 whatever becomes of a call, its credential is in no row, file, event, log or answer', async () => {
    const leaking = {
      description: 'Fails in this process',
      inputSchema: { type: 'object' },
      sideEffect: 'external',
      risk: 'external',
      idempotency: 'supported',
      credentials: [{ name: 'login', kind: 'bearer' }],
      transport: { kind: 'function', endpoint: 'leak' },
    }
    const catalog = createSkillCatalog([
      deskSkill(desk.service().url, { actions: { leak: { name: 'leak', ...leaking } } }),
    ])
    const leak = createFunctionTransport({
      leak: async ({ credentials }) => {
        throw new Error(`could not log in with ${credentials['login']?.value}`)
      },
    })
    const actions = { ...desk.parts, catalog, transports: { http: createHttpTransport(), function: leak } }
    const { kernel, logged } = await watched({ actions })
    const stage = await openStage(kernel, { binding: { allowedActions: [...ALLOWED, 'leak'] } })
    const ends: Record<string, string> = {}
    for (const [name, reaction] of Object.entries(REACTIONS)) {
      const before = desk.service().effects.length
      desk.service().react(reaction)
      const run = await stage.begin()
      await stage.propose(run.id, { action: 'send' })
      await stage.work()
      const sent = desk.service().effects.slice(before)
      expect([name, sent.map(({ headers }) => headers.authorization)]).toEqual([name, [`Bearer ${SECRET}`]])
      const call = await stage.call(run.id)
      ends[name] = call.status
      if (call.status === 'ready') {
        kernel.advance(60_000)
        await stage.work()
      }
    }
    expect(ends).toEqual({
      'an output': 'succeeded',
      'an output that is no JSON': 'failed',
      'a redirect': 'failed',
      'a refusal': 'failed',
      'a refusal that is cut right there': 'failed',
      'a refusal that is cut by the kernel': 'failed',
      'a refusal in JSON': 'failed',
      'a service that is busy': 'ready',
      'a service that fails': 'ambiguous',
      'a connection that breaks': 'ambiguous',
    })
    const run = await stage.begin()
    await stage.propose(run.id, { action: 'leak' })
    await stage.work()
    expect((await stage.call(run.id)).error).toBe('could not log in with [REDACTED]')

    const answers: string[] = []
    for (const path of [
      'agent-runs',
      'action-calls',
      'action-approvals',
      'activity?includeDetails=true',
      'agent-deployments',
    ]) {
      answers.push((await stage.api.get(`/${path}`)).text)
    }
    answers.push((await stage.api.get(`/agent-runs/${run.id}/runbook-audit`)).text)
    expect(answers.join('').includes('[REDACTED]')).toBe(true)
    /** A part that is long enough to be of use counts as the whole. */
    const sought = [...FORMS, SECRET.slice(0, 12), SECRET.slice(-12)]
    expect(found(answers.join('\n'), sought)).toEqual([])
    expect(found(await stored(open()), sought)).toEqual([])
    expect(found(logged(), sought)).toEqual([])
    await kernel.stop()
  })

  test('kernel#91 the key of the model and the token of the server are in no row, file, event, log or answer', async () => {
    const token = 'token-of-the-server-0123456789'
    const key = 'key-of-the-model'
    const { kernel, logged } = await watched({ agents: false, token })
    const { context } = kernel.kernel
    const it = bench(open(), model(), { context })
    const echo = `invalid key ${key} in Authorization: Bearer ${key}`
    const goals = [401, 503, 200, 0].map((status) => ({ status, goal: it.goal(`answered ${status}`) }))
    for (const { status, goal } of goals) {
      const done = { outcome: { status: 'completed', output: echo, summary: echo } }
      model().script(goal, [status === 200 ? done : status === 0 ? { malformed: echo } : { status, body: echo }])
      await it.create({ goal })
    }
    await it.work()
    const asked = goals.flatMap(({ goal }) =>
      model()
        .asked(goal)
        .map(({ headers }) => headers.authorization),
    )
    expect(new Set(asked)).toEqual(new Set([`Bearer ${key}`]))
    const headers = { Authorization: `Bearer ${token}` }
    const query = new URLSearchParams({ scopeKind: it.scope.kind, scopeId: it.scope.id }).toString()
    const answers: string[] = []
    for (const path of ['/agent-runs', '/activity', '/capabilities', '/nowhere']) {
      const path_ = `${path}?includeDetails=true&${query}`
      answers.push((await kernel.call('GET', path_, undefined, { headers })).text)
      answers.push(
        (await kernel.call('GET', path_, undefined, { headers: { Authorization: `Bearer ${token}x` } })).text,
      )
    }
    const body = { goal: 'x', owner: { type: 'agent', id: 'ana' }, idempotencyKey: 'k', nonsense: 1 }
    answers.push((await kernel.call('POST', `/agent-runs?${query}`, body, { headers })).text)
    for (const text of [answers.join('\n'), await stored(open()), logged()]) {
      expect(found(text, [key, token])).toEqual([])
    }
    expect(answers.join('').includes('answered 401')).toBe(true)
    await kernel.stop()
  })

  test('kernel#91 an idempotency key stands in no row as it was sent', async () => {
    const { kernel, logged } = await watched({})
    const api = kernel.api()
    const key = 'key-that-nobody-keeps'
    const made = await api.post('/agent-runs', { goal: 'Count', owner: { type: 'agent', id: 'ana' } }, key)
    expect(made.body.run.idempotencyKeyHash).toMatch(/^sha256:[0-9a-f]{64}$/)
    for (const text of [made.text, await stored(open()), logged()]) expect(found(text, [key])).toEqual([])
    await kernel.stop()
  })
})
