import { describe, expect, test } from 'vitest'
import { aboutRun, BY_KERNEL, makeChange } from '../../src/kernel/change.ts'
import { insertApproval } from '../../src/kernel/store/approvals.ts'
import { calls } from '../../src/kernel/store/calls.ts'
import { insertRecord, lockRecord } from '../../src/kernel/store/records.ts'
import { insertRun, runs, saveRun } from '../../src/kernel/store/runs.ts'
import { turns } from '../../src/kernel/store/turns.ts'
import { approvalOf, callOf, runOf, turnOf } from '../kernel/support.ts'
import {
  open,
  scope,
  useKernel,
  mem,
  client,
  json,
  createRun,
  end,
  approvalAsked,
  openDoor,
  followed,
} from './kernel-support.ts'

useKernel()

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
    await expect.poll(() => told).not.toEqual([])
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
    await expect.poll(() => stdout).not.toEqual([])
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
    await expect.poll(() => stderr).toHaveLength(1)
    await tell('action.human_intervention_required', { actionCallId: 'c1' })
    await expect.poll(() => stderr).toHaveLength(2)
    await mem(['runs', 'command', id, 'cancel'])
    expect(await watched).toBe(4)
    const where = `--scope ${scope.kind}:${scope.id}`
    expect(stderr.slice(0, 2).map((line) => line.trim())).toEqual([
      `it waits for you: mem approvals decide ${approvalId} approve ${where}`,
      `it waits for you: mem runs command ${id} intervene --intervention h1 --outcome succeeded|failed|retry ${where}`,
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
    await expect.poll(() => stdout.length > 0 && told.length > 0).toBe(true)
    isAway = true
    await expect.poll(() => asked > 6 && stderr.length === 2).toBe(true)
    isAway = false
    await mem(['runs', 'command', id, 'pause'])
    await expect.poll(() => stdout.length > 1 && told.length > 1).toBe(true)
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
