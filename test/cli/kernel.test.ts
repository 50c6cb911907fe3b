import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { KernelClient } from '../../src/client/index.ts'
import { createDefaultAuthorizer } from '../../src/kernel/actions/authorizer.ts'
import { aboutRun, BY_KERNEL, makeChange } from '../../src/kernel/change.ts'
import type { Run } from '../../src/kernel/model/run.ts'
import { moveRun } from '../../src/kernel/run-states.ts'
import { cancelRun } from '../../src/kernel/runs/cancel.ts'
import { saveMoved } from '../../src/kernel/runs/save.ts'
import { insertApproval } from '../../src/kernel/store/approvals.ts'
import { calls } from '../../src/kernel/store/calls.ts'
import { insertRecord, lockRecord } from '../../src/kernel/store/records.ts'
import { insertRun, runs, saveRun } from '../../src/kernel/store/runs.ts'
import { turns } from '../../src/kernel/store/turns.ts'
import { idleDesk } from '../kernel/actions-support.ts'
import { openKernel, type OpenKernel } from '../kernel/api.ts'
import { approvalOf, callOf, createStorePlace, openStore, runOf, turnOf } from '../kernel/support.ts'
import { runCli, type CliResult } from './run-cli.ts'

const TOKEN = 'a-token-of-tests'
let open: OpenKernel
let scope: { kind: string; id: string }
let folder: string
let n = 0

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'mem-test-kernel-cli-'))
  open = await openKernel(await openStore(await createStorePlace('memory')), {
    token: TOKEN,
    approvalAuthorizer: createDefaultAuthorizer(),
    actions: idleDesk,
  })
})
afterAll(async () => {
  await open.stop()
  await open.store.close()
  rmSync(folder, { recursive: true, force: true })
})
beforeEach(() => {
  scope = { kind: 'test', id: `cli${++n}` }
})

const origin = (): string => new URL(open.url).origin
const mem = (argv: string[], around: Parameters<typeof runCli>[1] = {}): Promise<CliResult> =>
  runCli([...argv, ...(argv.includes('--scope') ? [] : ['--scope', `${scope.kind}:${scope.id}`])], {
    ...around,
    env: { KERNEL_ENDPOINT: origin(), KERNEL_API_TOKEN: TOKEN, ...around.env },
  })
const client = (): KernelClient => new KernelClient(origin(), { token: TOKEN, scope })

async function json(argv: string[]) {
  const { code, stdout, stderr } = await mem([...argv, '-o', 'json'])
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

const createRun = async (goal = 'Count the moons'): Promise<string> =>
  (await mem(['-q', 'runs', 'create', '--goal', goal, '--owner', 'agent:ana'])).stdout.trim()

/** What a worker does with a run. */
const end = (id: string, to: 'completed' | 'failed' | 'canceled', fields: Partial<Run> = {}): Promise<unknown> =>
  makeChange(open.kernel.context, scope, BY_KERNEL, async (change) => {
    const run = await lockRecord(change.tx, runs, scope, id)
    if (to === 'canceled') return cancelRun(change, run, 'enough')
    const { now } = change
    return saveMoved(change, run, { ...moveRun(moveRun(run, { to: 'running', now }), { to, now }), ...fields })
  })

/** A run that waits for a decision, with its call and approval. */
async function approvalAsked(): Promise<string> {
  const run = runOf(open, { scope, id: open.newId(), status: 'waiting_for_approval' })
  const call = callOf(open, {
    scope,
    runId: run.id,
    status: 'waiting_for_approval',
    arguments: { to: 'pia@example.org' },
  })
  const approval = approvalOf(open, {
    scope,
    runId: run.id,
    actionCallId: call.id,
    eligibleApprovers: [{ type: 'user', id: 'local' }],
    destinations: [{ endpointId: 'mail.example.org' }],
    policyReason: 'it leaves the house',
  })
  await open.store.database.transaction(async (tx) => {
    await insertRun(tx, { ...run, wakeCondition: { type: 'approval', reference: approval.id } })
    await insertRecord(tx, calls, { ...call, approvalId: approval.id })
    await insertApproval(tx, approval, run.owner)
  })
  return approval.id
}

describe('mem kernel', () => {
  test('health and capabilities', async () => {
    expect((await mem(['kernel', 'health'])).stdout).toMatch(/^ok {2}version \S+ {2}since /)
    expect(await json(['kernel', 'health'])).toMatchObject({ status: 'ok', checks: { store: { status: 'ok' } } })
    const { stdout } = await mem(['kernel', 'capabilities'])
    expect(stdout).toContain('objectives  1  create list get update\n')
  })

  test('a kernel that is not well gives exit code 3', async () => {
    const ill = await openKernel(await openStore(await createStorePlace('memory')), {
      checks: { model: async () => ({ status: 'down', detail: 'no answer' }) },
    })
    const told = await mem(['kernel', 'health', '--endpoint', ill.url])
    await ill.stop()
    await ill.store.close()
    expect(told.code).toBe(3)
    expect(told.stdout).toMatch(/^degraded[\s\S]*model {2}down/)
    expect(told.stderr).toContain('the kernel is degraded')
  })

  test('exit codes: 2 without the token, 8 for what is not there, 4 for other refusals and no server, 1 for usage', async () => {
    const refused = await mem(['runs', 'list'], { env: { KERNEL_API_TOKEN: 'wrong' } })
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toContain('KERNEL_API_TOKEN')
    expect((await mem(['runs', 'list', '--token', TOKEN], { env: { KERNEL_API_TOKEN: 'wrong' } })).code).toBe(0)
    expect((await mem(['runs', 'list', '--api-key', TOKEN], { env: { KERNEL_API_TOKEN: '' } })).code).toBe(0)
    expect(await mem(['runs', 'show', 'none'])).toMatchObject({ code: 8, stderr: expect.stringContaining('--scope') })
    expect((await mem(['objectives', 'create', '--title', ' ', '--goal', 'x', '--owner', 'agent:ana'])).code).toBe(4)
    const nobody = await mem(['runs', 'list', '--endpoint', 'http://127.0.0.1:1'])
    expect(nobody).toMatchObject({ code: 4, stderr: expect.stringContaining('cannot reach http://127.0.0.1:1') })
    expect((await mem(['runs', 'list', '--scope', 'local'])).code).toBe(1)
    expect((await mem(['runs', 'list', '--header', 'Authorization=x'])).code).toBe(1)
    expect((await mem(['runs', 'create', '--goal', 'x', '--owner', 'user:pia'])).code).toBe(1)
  })

  test('--endpoint wins over KERNEL_ENDPOINT, and that over MEM_ENDPOINT', async () => {
    const env = { MEM_ENDPOINT: 'http://127.0.0.1:1' }
    expect((await mem(['kernel', 'capabilities'], { env })).code).toBe(0)
    const elsewhere = { KERNEL_ENDPOINT: 'http://127.0.0.1:1' }
    expect((await mem(['kernel', 'capabilities', '--endpoint', origin()], { env: elsewhere })).code).toBe(0)
    expect((await mem(['kernel', 'capabilities'], { env: elsewhere })).code).toBe(4)
    const other = { KERNEL_ENDPOINT: '', MEM_ENDPOINT: origin() }
    expect((await mem(['kernel', 'capabilities'], { env: other })).code).toBe(0)
  })

  test('activity: the newest first, by run and type, page by page', async () => {
    const id = await createRun()
    await createRun()
    await mem(['runs', 'command', id, 'pause'])
    expect((await mem(['kernel', 'activity'])).stdout.split('\n')[0]).toContain('run.paused  user:local')
    const of = await json(['kernel', 'activity', '--run', id, '--type', 'run.created,run.resumed'])
    expect(of.items).toMatchObject([{ runId: id, eventType: 'run.created' }])
    const first = await mem(['kernel', 'activity', '--limit', '2'])
    const cursor = /more: --cursor (\S+)/.exec(first.stderr)?.[1] ?? ''
    expect((await mem(['kernel', 'activity', '--cursor', cursor])).stdout.trim().split('\n')).toHaveLength(1)
  })

  test('activity --follow tells what happens until Ctrl-C', async () => {
    await createRun()
    const stdout: string[] = []
    const told = followed(['kernel', 'activity', '--follow', '-o', 'jsonl'], stdout)
    await until(() => stdout.length === 1)
    await createRun('Count the stars')
    await until(() => stdout.length === 2)
    process.emit('SIGINT')
    expect(await told).toBe(0)
    expect(stdout.map((line) => JSON.parse(line).eventType)).toEqual(['run.created', 'run.created'])
  })

  test('agents: install from a file, list, show', async () => {
    const file = join(folder, 'ana.yaml')
    writeFileSync(
      file,
      `manifest:
  id: ana
  version: '1'
  displayName: Ana
  purpose: Look
  systemPrompt: Look up.
  authority: { maximumRisk: read }
deployment: { id: ana, environment: test }
`,
    )
    const installed = await mem(['kernel', 'agents', 'install', file])
    expect(installed.stderr).toBe('')
    expect(installed.stdout).toMatch(/^ana {2}active {2}test\/\S+\/ana@1 {2}test {2}Ana\n$/)
    expect((await json(['kernel', 'agents', 'list'])).items).toHaveLength(1)
    expect(await json(['kernel', 'agents', 'show', 'ana'])).toMatchObject({ definition: { systemPrompt: 'Look up.' } })
    const wrong = join(folder, 'wrong.json')
    writeFileSync(wrong, '{"manifest": {"id": "x"}}')
    expect(await mem(['kernel', 'agents', 'install', wrong])).toMatchObject({ code: 1 })
    writeFileSync(wrong, '{"manifest": {"id": "x"}, "deployment": {"id": "x", "environment": "test"}}')
    expect(await mem(['kernel', 'agents', 'install', wrong])).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('manifest.version'),
    })
  })
})

describe('mem kernel bindings', () => {
  const manifest = {
    id: 'ana',
    version: '1',
    displayName: 'Ana',
    purpose: 'Write',
    systemPrompt: 'Write letters.',
    skillRequirements: [{ skillId: 'desk' }],
    authority: { maximumRisk: 'write' },
  }
  const desk = { id: 'desk', skillId: 'desk', skillVersion: '1.0.0', allowedActions: ['note'], maximumRisk: 'write' }
  const install = (fields: { bindings?: object[]; rolloutStatus?: string }): Promise<CliResult> => {
    const { bindings, ...more } = fields
    const file = join(folder, 'agent.json')
    const deployment = { id: 'ana', environment: 'test', ...more }
    writeFileSync(file, JSON.stringify({ manifest, deployment, ...(bindings && { bindings }) }))
    return mem(['kernel', 'agents', 'install', file])
  }
  const state = async () => {
    const { deployment } = await client().agents.get('ana')
    const { items } = await client().skills.bindings({ type: 'agent', id: 'ana' })
    return [deployment.rolloutStatus, deployment.revision, items.map(({ revision }) => revision)]
  }

  test('an agent is installed with its skills, and takes no runs until they are bound', async () => {
    const broken = await install({ bindings: [{ ...desk, maximumRisk: 'destructive' }] })
    expect(broken).toMatchObject({ code: 4, stderr: expect.stringContaining('binding.maximumRisk') })
    expect(await state()).toEqual(['pending', 1, []])
    expect((await install({ bindings: [desk] })).stdout).toMatch(/^ana {2}active /)
    expect(await state()).toEqual(['active', 2, [1]])
    expect((await install({ bindings: [desk] })).stderr).toBe('')
    expect(await state()).toEqual(['active', 2, [1]])

    const onlyHi = { ...desk, argumentRestrictions: { note: { text: { const: 'hi' } } } }
    expect((await install({ bindings: [onlyHi] })).code).toBe(0)
    expect(await state()).toEqual(['active', 4, [2]])
    const { stdout } = await mem(['kernel', 'activity', '--type', 'skill.binding_created,skill.binding_updated'])
    expect(stdout.trim().split('\n')).toEqual([
      expect.stringContaining('skill.binding_updated  user:local'),
      expect.stringContaining('skill.binding_created  user:local'),
    ])
  })

  test('an agent that was paused stays so, and the command says it', async () => {
    await install({ bindings: [desk], rolloutStatus: 'paused' })
    const again = await install({ bindings: [{ ...desk, allowedActions: ['look'] }] })
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('it is paused') })
    expect((await state())[0]).toBe('paused')
    await install({ bindings: [{ ...desk, allowedActions: ['look'] }], rolloutStatus: 'active' })
    expect((await state())[0]).toBe('active')
    expect((await install({ bindings: [{ skillId: 'desk' }] })).stderr).toContain('each with its id')
  })

  test('put, list and disable', async () => {
    await install({})
    const { id: _, ...content } = desk
    const file = join(folder, 'binding.yaml')
    writeFileSync(file, JSON.stringify(content))
    const put = (...flags: string[]) => mem(['kernel', 'bindings', 'put', 'ana', 'letters', file, ...flags])
    const shown = 'letters  enabled  desk@1.0.0  write  note\n'
    expect(await put()).toMatchObject({ code: 0, stdout: shown, stderr: '' })
    expect((await put('--revision', '0')).stderr).toContain('revision conflict')
    expect((await mem(['kernel', 'bindings', 'list', 'ana'])).stdout).toBe(shown)
    expect((await client().skills.actions('ana')).actions).toMatchObject([{ name: 'desk.note', bindingId: 'letters' }])
    const disable = ['kernel', 'bindings', 'disable', 'ana', 'letters', '--reason', 'no letters at night']
    expect((await mem(disable)).stdout).toContain('letters  disabled')
    expect((await client().skills.actions('ana')).actions).toEqual([])
    expect((await mem(disable)).code).toBe(4)
    expect((await put()).stdout).toBe(shown)
    const { items } = await json(['kernel', 'bindings', 'list', 'ana'])
    expect(items[0].lifecycle).toMatchObject([
      { action: 'created', actor: { type: 'user', id: 'local' } },
      { action: 'disabled', reason: 'no letters at night' },
      { action: 'enabled' },
    ])
    expect((await mem(['kernel', 'bindings', 'list', 'none'])).code).toBe(8)
    expect((await mem(['kernel', 'bindings', 'list', 'ana', '--team'])).code).toBe(8)
    writeFileSync(file, '- a list')
    expect((await put()).code).toBe(1)
  })
})

/** A way to the kernel on which something happens before each request goes on, if it is not cut off. */
async function openDoor(before: (request: IncomingMessage) => void | Promise<void>) {
  const pass = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    await before(request)
    if (request.socket.destroyed) return
    const { authorization = '', 'idempotency-key': key } = request.headers
    const answer = await fetch(origin() + request.url, {
      method: request.method ?? 'GET',
      headers: {
        authorization,
        'Content-Type': 'application/json',
        ...(typeof key === 'string' && { 'Idempotency-Key': key }),
      },
      ...(request.method === 'POST' && { body: await textOf(request) }),
    })
    response.writeHead(answer.status).end(await answer.text())
  }
  const door = createServer((request, response) => {
    pass(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve))
  const address = door.address()
  return {
    endpoint: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`,
    close: () => {
      door.closeAllConnections()
      door.close()
    },
  }
}

/** Runs a command that goes on, and keeps what it prints. */
async function followed(argv: string[], stdout: string[], stderr: string[] = []): Promise<number> {
  const { runProgram } = await import('../../src/cli/program.ts')
  return runProgram([...argv, '--scope', `${scope.kind}:${scope.id}`], {
    stdin: (async function* () {})(),
    stdout: { write: (text: string) => void stdout.push(...text.trim().split('\n')) },
    stderr: { write: (text: string) => void stderr.push(text) },
    env: { KERNEL_ENDPOINT: origin(), KERNEL_API_TOKEN: TOKEN },
  })
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 20))
}

describe('mem objectives and runs', () => {
  test('an objective: create, list, show with its runs', async () => {
    const fields = ['--title', 'Moons', '--goal', 'Know them', '--owner', 'agent:ana', '--status', 'active']
    const { id } = await json(['objectives', 'create', ...fields])
    expect((await mem(['objectives', 'list', '--status', 'active'])).stdout).toBe(`${id}  active  agent:ana  Moons\n`)
    expect((await mem(['objectives', 'list', '--status', 'draft'])).stdout).toBe('')
    await mem(['runs', 'create', '--goal', 'Count', '--owner', 'agent:ana', '--objective', id])
    const shown = (await mem(['objectives', 'show', id])).stdout
    expect(shown).toContain('goal  Know them\n')
    expect(shown).toContain('  queued  agent:ana  Count\n')
    expect(await json(['runs', 'list', '--objective', id])).toHaveLength(1)
  })

  test('a run: the same key makes one, lists, commands, admission', async () => {
    const create = ['-q', 'runs', 'create', '--goal', 'Count', '--owner', 'team:crew', '--agent', 'bo', '--key', 'k1']
    const one = await mem(create)
    expect((await mem(create)).stdout).toBe(one.stdout)
    const id = one.stdout.trim()
    expect((await mem(['runs', 'list', '--agent', 'bo'])).stdout).toBe(`${id}  queued  team:crew  by bo  Count\n`)
    expect(await json(['runs', 'list', '--query', 'COUNT', '--status', 'queued,paused'])).toHaveLength(1)
    expect((await mem(['runs', 'command', id, 'pause', '--summary', 'later'])).stdout).toContain('paused  team:crew')
    expect((await mem(['runs', 'admission', '--run', id])).stdout).toContain(`${id}  paused`)
    expect((await mem(['runs', 'command', id, 'resume', '--revision', '1'])).stderr).toContain('revision conflict')
    expect((await mem(['runs', 'command', id, 'resume'])).code).toBe(0)
    const guided = await json(['runs', 'command', id, 'intervene', '--instruction', 'Of Mars'])
    expect(guided.run.pendingInterventions).toMatchObject([{ instruction: 'Of Mars' }])
    expect((await mem(['runs', 'command', id, 'resume', '--top-up', 'maxTurns=x'])).code).toBe(1)
    expect((await mem(['runs', 'command', id, 'intervene', '--outcome', 'retry'])).code).toBe(1)
    expect((await mem(['runs', 'command', id, 'intervene', '--top-up', 'maxTurns=5'])).code).toBe(4)
    expect((await mem(['runs', 'command', id, 'cancel'])).stdout).toContain('canceled')
    expect((await mem(['runs', 'command', id, 'fly'])).code).toBe(1)
  })

  test('show tells of turns, calls and approvals, and the audit', async () => {
    const approvalId = await approvalAsked()
    const { runId } = await client().approvals.get(approvalId)
    const { stdout } = await mem(['runs', 'show', runId])
    expect(stdout).toContain(`${runId}  waiting_for_approval  agent:ana  for approval ${approvalId}`)
    expect(stdout).toContain('call  waiting_for_approval  mail send')
    expect(stdout).toContain(`${approvalId}  pending  external`)
    expect(await json(['runs', 'show', runId])).toMatchObject({
      run: { id: runId },
      turns: [],
      calls: [{}],
      approvals: [{}],
    })
    expect(await json(['runs', 'show', runId, '--audit'])).toMatchObject({ run: { id: runId } })
  })

  test('show tells why a run sleeps, and what of it was refused', async () => {
    const run = runOf(open, { scope, id: open.newId(), status: 'sleeping', lastAppliedTurn: 1 })
    const wakeCondition = { type: 'timer', wakeAt: '2030-01-01T00:00:00.000Z' } as const
    const refused = { code: 'refused', message: 'the arguments do not fit: text must be string' }
    const down = { code: 'model_unavailable', message: 'the model answered 503' }
    await makeChange(open.kernel.context, scope, BY_KERNEL, async (change) => {
      await insertRun(change.tx, { ...run, wakeCondition })
      const of = { scope, runId: run.id }
      await insertRecord(change.tx, turns, turnOf(open, { ...of, sequence: 1, status: 'completed', error: refused }))
      await insertRecord(change.tx, turns, turnOf(open, { ...of, sequence: 2, status: 'running', error: down }))
      const payload = { refused: refused.message }
      change.report({ ...aboutRun(run), eventType: 'run.transitioned', summary: 'Write', payload })
    })
    const { stdout } = await mem(['runs', 'show', run.id])
    expect(stdout).toContain('turn 1  completed  (refused: the arguments do not fit: text must be string)\n')
    expect(stdout).toContain('turn 2  running  (model_unavailable: the model answered 503)\n')
    const told: string[] = []
    const watched = followed(['runs', 'watch', run.id], told)
    await until(() => told.length > 0)
    await mem(['runs', 'command', run.id, 'cancel'])
    await watched
    expect(told[0]).toContain('Write  (refused: the arguments do not fit: text must be string)')
  })

  test.each([
    ['completed', { output: { moons: 2 } }, 0],
    ['failed', { error: { code: 'model_rejected', message: 'no such model' } }, 4],
    ['canceled', {}, 4],
  ] as const)('watch follows a run until it is %s', async (to, fields, code) => {
    const id = await createRun()
    const stdout: string[] = []
    const watched = followed(['runs', 'watch', id], stdout)
    await until(() => stdout.length > 0)
    await mem(['runs', 'command', id, 'intervene', '--instruction', 'Of Mars'])
    await end(id, to, fields)
    expect(await watched).toBe(code)
    expect(stdout[0]).toContain('run.created')
    expect(stdout[1]).toContain('run.intervened')
    expect(stdout.join('\n')).toContain(`${id}  ${to}`)
  })

  test('watch says how to answer what is still open, and nothing of what was answered', async () => {
    const approvalId = await approvalAsked()
    const { runId: id } = await client().approvals.get(approvalId)
    const tell = (eventType: string, payload: object): Promise<unknown> =>
      makeChange(open.kernel.context, scope, BY_KERNEL, async (change) => {
        const run = await lockRecord(change.tx, runs, scope, id)
        const asked = { id: 'h1', kind: 'action_outcome', status: 'pending', summary: 'Was it sent?' } as const
        const humanInterventions = [{ ...asked, challenge: ['Look'], createdAt: change.at }]
        await saveRun(change.tx, { ...run, humanInterventions }, change.now)
        change.report({ ...aboutRun(run), eventType, summary: 'Asked', payload: { ...payload } })
      })
    await tell('action.approval_requested', { approvalId })
    const [stdout, stderr]: [string[], string[]] = [[], []]
    const watched = followed(['runs', 'watch', id], stdout, stderr)
    await until(() => stderr.length === 1)
    await tell('action.human_intervention_required', { actionCallId: 'c1' })
    await until(() => stderr.length === 2)
    await mem(['runs', 'command', id, 'cancel'])
    expect(await watched).toBe(4)
    expect(stderr.slice(0, 2).map((line) => line.trim())).toEqual([
      `it waits for you: mem approvals decide ${approvalId} approve`,
      `it waits for you: mem runs command ${id} intervene --intervention h1 --outcome succeeded|failed|retry`,
    ])
    expect((await mem(['runs', 'watch', id])).stderr).not.toContain('waits for you')
  })

  test('a run of an objective with a budget gets a part of it', async () => {
    const fields = ['--title', 'Moons', '--goal', 'Know them', '--owner', 'agent:ana', '--status', 'active']
    const { id, budget } = await json(['objectives', 'create', ...fields, '--budget', 'maxTurns=5'])
    expect(budget).toEqual({ maxTurns: 5 })
    const create = ['runs', 'create', '--goal', 'Count', '--owner', 'agent:ana', '--objective', id]
    expect(await mem(create)).toMatchObject({ code: 4, stderr: expect.stringContaining('budget is required') })
    const { run } = await json([...create, '--budget', 'maxTurns=3', '--budget', 'maxActions=1'])
    expect(run.budget).toEqual({ maxTurns: 3, maxActions: 1 })
    expect((await mem([...create, '--budget', 'maxTurns=3'])).stderr).toContain('2 is left')
    expect((await mem([...create, '--budget', 'maxTurns=some'])).code).toBe(1)
  })

  test('lists of one owner', async () => {
    const id = await createRun()
    await mem(['runs', 'create', '--goal', 'Count', '--owner', 'team:crew'])
    expect((await mem(['-q', 'runs', 'list', '--owner', 'agent:ana'])).stdout).toBe(`${id}\n`)
    expect((await mem(['runs', 'list', '--owner', 'ana'])).stderr).toContain('not of the form type:id')
    expect((await mem(['runs', 'list', '--scope', 'here'])).stderr).toContain('not of the form kind:id')
  })

  test('watch outlasts a server that is restarted, and leaves with 130 after Ctrl-C', async () => {
    const id = await createRun()
    let isAway = false
    let asked = 0
    const door = await openDoor((request) => {
      if (isAway && ++asked) request.socket.destroy()
    })
    const { endpoint } = door
    const [stdout, told, stderr]: [string[], string[], string[]] = [[], [], []]
    const watched = followed(['runs', 'watch', id, '--endpoint', endpoint], stdout, stderr)
    const activity = followed(['kernel', 'activity', '--follow', '--endpoint', endpoint], told, stderr)
    await until(() => stdout.length > 0 && told.length > 0)
    isAway = true
    await until(() => asked > 6 && stderr.length === 2)
    isAway = false
    await mem(['runs', 'command', id, 'pause'])
    await until(() => stdout.length > 1 && told.length > 1)
    expect([stdout[1], told[1]]).toEqual([expect.stringContaining('run.paused'), expect.stringContaining('run.paused')])
    isAway = true
    process.emit('SIGINT')
    expect(await Promise.all([watched, activity])).toEqual([130, 0])
    expect(stderr.join('')).toContain(`mem runs watch ${id}`)
    door.close()
  })

  test('a command finds a run that moves meanwhile', async () => {
    const id = await createRun()
    let moved = 0
    const door = await openDoor(async (request) => {
      if (request.method !== 'POST' || moved > 1) return
      moved++
      const { revision: expectedRevision } = await client().runs.get(id)
      await client().runs.command(id, { kind: 'intervene', instruction: 'On', expectedRevision })
    })
    const paused = await mem(['runs', 'command', id, 'pause', '--endpoint', door.endpoint])
    expect([paused.code, moved, paused.stdout]).toEqual([0, 2, expect.stringContaining('paused')])
    const again = await mem(['runs', 'command', id, 'pause', '--endpoint', door.endpoint])
    expect(again).toMatchObject({ code: 4, stderr: expect.stringContaining('pause is not possible') })
    door.close()
  })

  test('what an agent wrote cannot steer a terminal, in no form of output', async () => {
    const id = await createRun('Look \u001b[2J\u009b2J\u202eeno')
    await end(id, 'failed', { error: { code: 'gave_up', message: 'no \u001b]0;owned\u0007\u009b2J\u2066' } })
    for (const argv of [
      ['runs', 'watch', id],
      ['runs', 'show', id],
      ['runs', 'show', id, '-o', 'json'],
      ['runs', 'show', id, '-o', 'yaml'],
      ['runs', 'list', '-o', 'jsonl'],
      ['runs', 'show', 'a\u001b[2J'],
    ]) {
      const { stdout, stderr } = await mem(argv)
      const steering = (stdout + stderr).match(/[^\P{Cc}\n]|[\u202a-\u202e\u2066-\u2069]/gu)
      expect([argv, steering]).toEqual([argv, null])
    }
    const { run } = await json(['runs', 'show', id])
    expect(run.goal).toBe('Look \u001b[2J\u009b2J\u202eeno')
    const { fromYaml } = await import('../../src/cli/yaml.ts')
    expect(fromYaml((await mem(['runs', 'show', id, '-o', 'yaml'])).stdout)).toMatchObject({ run: { goal: run.goal } })
  })

  test('show has the whole error, and the last of many calls and approvals', async () => {
    const run = runOf(open, { scope, status: 'failed', error: { code: 'gave_up', message: `${'no '.repeat(60)}end` } })
    await open.store.database.transaction(async (tx) => {
      await insertRun(tx, run)
      for (let i = 0; i < 120; i++) {
        const at = new Date(1_800_000_000_000 + i).toISOString()
        const call = callOf(open, { scope, runId: run.id, createdAt: at, idempotencyKey: `${i}` })
        await insertRecord(tx, calls, call)
        await insertApproval(
          tx,
          approvalOf(open, { scope, runId: run.id, actionCallId: call.id, createdAt: at }),
          run.owner,
        )
      }
    })
    expect((await mem(['runs', 'show', run.id])).stdout).toContain('no no end\n')
    const shown = await json(['runs', 'show', run.id])
    expect(shown.calls.map((call: { idempotencyKey: string }) => Number(call.idempotencyKey))).toEqual(
      Array.from({ length: 100 }, (_, i) => i + 20),
    )
    expect(shown.approvals.map((one: { actionCallId: string }) => one.actionCallId)).toEqual(
      shown.calls.map((call: { id: string }) => call.id),
    )
  })

  test('watch of a run that ended tells why at once', async () => {
    const id = await createRun()
    await end(id, 'failed', { error: { code: 'model_rejected', message: 'no such model' } })
    expect(await mem(['runs', 'watch', id])).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('the run failed: no such model (model_rejected)'),
    })
    expect((await mem(['runs', 'watch', 'none'])).code).toBe(8)
  })
})

describe('mem approvals', () => {
  test('list and show say what would be done', async () => {
    const id = await approvalAsked()
    expect((await mem(['approvals', 'list'])).stdout).toContain(`${id}  pending  external`)
    const { stdout } = await mem(['approvals', 'show', id])
    for (const line of [
      'action  mail@1.0.0 send',
      'arguments  {"to":"pia@example.org"}',
      'risk  external, side effect external',
      'to  mail.example.org',
      'approvers  user:local',
      'why asked  it leaves the house',
    ]) {
      expect(stdout).toContain(`${line}\n`)
    }
  })

  test('decide shows it, and asks on a terminal', async () => {
    const id = await approvalAsked()
    const refused = await mem(['approvals', 'decide', id, 'approve'], { isTTY: true, stdin: 'n\n' })
    expect(refused).toMatchObject({ code: 4, stdout: '' })
    expect(refused.stderr).toContain('pia@example.org')
    expect(refused.stderr).toContain('Let this be done?')
    expect((await client().approvals.get(id)).status).toBe('pending')
    const approved = await mem(['approvals', 'decide', id, 'approve'], { isTTY: true, stdin: 'y\n' })
    expect(approved.code).toBe(0)
    expect(await client().approvals.get(id)).toMatchObject({ status: 'approved', decisionBy: { id: 'local' } })
  })

  test('elsewhere it needs --yes; the same decision again does nothing, another is a conflict', async () => {
    const id = await approvalAsked()
    expect(await mem(['approvals', 'decide', id, 'reject'])).toMatchObject({ code: 1 })
    expect((await mem(['approvals', 'decide', id, 'request_changes', '--yes'])).code).toBe(1)
    expect((await mem(['approvals', 'decide', id, 'reject', '--yes', '--principal', 'user:eve'])).code).toBe(4)
    const send = [
      'approvals',
      'decide',
      id,
      'request_changes',
      '--reason',
      'To Pia alone',
      '--yes',
      '--decision-id',
      'd1',
    ]
    const { stdout, stderr } = await mem(send)
    expect(stdout).toContain(`${id}  changes_requested`)
    expect(stderr).toContain('mail.example.org')
    expect(await mem(send)).toMatchObject({ code: 0, stdout })
    const { items } = await json(['kernel', 'activity', '--type', 'approval.changes_requested'])
    expect(items).toMatchObject([{ actor: { type: 'user', id: 'local' } }])
    expect((await mem([...send.slice(0, 3), 'approve', '--yes', '--decision-id', 'd1'])).stderr).toContain(
      'other content',
    )
    expect((await mem(['approvals', 'decide', id, 'approve', '--yes'])).code).toBe(4)
    expect((await json(['approvals', 'list', '--status', 'changes_requested']))[0]).toMatchObject({
      id,
      decisionId: 'd1',
    })
  })
})
