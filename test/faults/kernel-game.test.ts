import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { KernelClient } from '../../src/client/index.ts'
import type { AgentRequest, Run } from '../../src/client/kernel/kernel-types.ts'
import { startEffectServer } from '../support/effect-server.ts'
import { startScriptedModel, type ScriptedModel } from '../support/scripted-model.ts'
import { type RunningServer, startServer } from '../support/server.ts'
import { createPlace, describeOnBothDatabases, type Place } from './place.ts'
import { boardOf, player, referee, winnerOf } from './tic-tac-toe.ts'

const GOAL = 'Referee a game of tic-tac-toe, and publish the board'
const THIRD_MOVE = 'Move 3, try 1'
const SCOPE = 'scopeKind=local&scopeId=default'
const UNTIL = { interval: 100, timeout: 120_000 }

const press = (endpoint: string): object => ({
  id: 'press',
  version: '1.0.0',
  name: 'Press',
  transport: { kind: 'http', endpoint },
  actions: {
    publish: {
      name: 'publish',
      description: 'Publishes the board',
      sideEffect: 'external',
      risk: 'external',
      idempotency: 'supported',
      inputSchema: {
        type: 'object',
        properties: { board: { type: 'string' }, moves: { type: 'array' }, winner: { type: 'string' } },
        required: ['board', 'moves'],
      },
    },
  },
})

/** A server over the place, with an operator; another one may have died over it. */
const start = ({ directory, env, address }: Place, model: ScriptedModel): Promise<RunningServer> =>
  startServer({
    directory,
    args: ['--standalone-operator'],
    env: {
      ...env,
      KERNEL_MODEL_BASE_URL: model.baseUrl,
      KERNEL_MODEL_NAME: 'scripted',
      KERNEL_MODEL_API_KEY: 'key-of-the-model',
      ...(address.dialect === 'postgres' && { KERNEL_STORAGE_DSN: address.dsn }),
    },
  })

async function installAgents(client: KernelClient, url: string): Promise<void> {
  for (const id of ['referee', 'cross', 'nought']) {
    const manifest = {
      id,
      version: '1.0.0',
      displayName: id,
      purpose: 'Plays tic-tac-toe',
      systemPrompt: `You are ${id}.`,
      authority: { maximumRisk: id === 'referee' ? 'external' : 'read', maxConcurrentRuns: 2 },
    } as const
    const deployment = { id, environment: 'test', capacity: { maxConcurrentRuns: 2 } }
    await client.agents.install(
      { manifest, deployment, actorType: 'user', actorId: 'una' },
      { idempotencyKey: `install ${id}` },
    )
  }
  const binding = { skillId: 'press', skillVersion: '1.0.0', allowedActions: ['publish'], maximumRisk: 'external' }
  const put = { binding, expectedRevision: 0, actor: { type: 'user', id: 'una' }, reason: 'the referee publishes' }
  const bound = await fetch(`${url}/api/v1/agent-deployments/referee/skill-bindings/press?${SCOPE}`, {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(put),
  })
  expect([bound.status, await bound.text()]).toEqual([201, expect.any(String)])
}

async function listRequests(client: KernelClient, sourceRunId: string): Promise<AgentRequest[]> {
  const found: AgentRequest[] = []
  for await (const request of client.paginate((at) => client.requests.list({ sourceRunId, ...at }))) found.push(request)
  return found.sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1))
}

describeOnBothDatabases('three agents and a server that is killed', (dialect) => {
  test(
    'kernel#92 three agents play a game to its end across two kills, and deliver the board once ' +
      '(as an action and as output: the register of artifacts is not covered)',
    { timeout: 300_000 },
    async () => {
      const [model, service] = [await startScriptedModel(), await startEffectServer()]
      const place = await createPlace(dialect, `kernel: { storage: { driver: ${dialect} } }`)
      let server: RunningServer | undefined
      try {
        let letGo = (): void => {}
        const gone = new Promise<void>((resolve) => (letGo = resolve))
        model.script(GOAL, (envelope) => ({ outcome: referee(envelope) }))
        model.script('*', (envelope) => ({ outcome: player(envelope) }))
        model.script(THIRD_MOVE, (envelope, before) =>
          before === 0 ? { after: gone, outcome: player(envelope) } : { outcome: player(envelope) },
        )
        const skills = join(place.directory, 'data/skills')
        mkdirSync(skills, { recursive: true })
        writeFileSync(join(skills, 'press.json'), JSON.stringify(press(service.url)))

        server = await start(place, model)
        let client = new KernelClient(server.url)
        await installAgents(client, server.url)
        const owner = { type: 'agent', id: 'referee' } as const
        const objective = await client.objectives.create(
          { owner, title: 'A game', goal: 'A board', status: 'active' },
          { idempotencyKey: 'objective' },
        )
        const third = model.held(THIRD_MOVE)
        const { run } = await client.runs.create(
          { owner, goal: GOAL, objectiveId: objective.id },
          { idempotencyKey: 'game' },
        )
        await third
        await server.kill()
        letGo()

        server = await start(place, model)
        client = new KernelClient(server.url)
        const listPending = async () => (await client.approvals.list({ runId: run.id, status: ['pending'] })).items
        await expect.poll(async () => (await listPending()).length, UNTIL).toBe(1)
        await server.kill()

        server = await start(place, model)
        client = new KernelClient(server.url)
        const [approval] = await listPending()
        expect(service.effects).toEqual([])
        await client.approvals.decide(approval?.id ?? '', {
          decision: 'approve',
          decisionId: 'publish it',
          expectedRevision: approval?.revision ?? 0,
          principal: { type: 'user', id: 'local' },
        })
        await expect.poll(async () => (await client.runs.get(run.id)).status, UNTIL).toBe('completed')

        // The moves as the players made them, two of nought refused: by the rules they give what was delivered, once.
        const asked = await listRequests(client, run.id)
        expect(asked.map(({ status }) => status)).toEqual(asked.map(() => 'completed'))
        const made = await Promise.all(asked.map(async ({ childRunId = '' }) => client.runs.get(childRunId)))
        const { output } = await client.runs.get(run.id)
        const moves = [4, 0, 2, 1, 6].map((cell, i) => ({ mark: i % 2 === 0 ? 'X' : 'O', cell }) as const)
        expect(made.map(cellOf)).toEqual([4, 4, 0, 2, 4, 1, 6])
        const board = boardOf(moves)
        expect([board, winnerOf(board)]).toEqual(['OOX.X.X..', 'X'])
        expect(output).toEqual({ board, moves, winner: 'X', receipt: { ok: true } })
        expect(service.effects.map(({ body }) => body.arguments)).toEqual([{ board, moves, winner: 'X' }])

        // Only the turn that was killed was asked for twice, under its own id.
        const turns = model.requests.map(({ envelope }) => envelope.invocationId)
        const twice = turns.filter((id, i) => turns.indexOf(id) !== i)
        const [first, second] = model.asked(THIRD_MOVE).map(({ envelope }) => envelope)
        expect([second?.invocationId, second?.instructions.systemPrompt]).toEqual([twice[0], 'You are cross.'])
        expect([twice.length, first?.invocationId]).toEqual([1, twice[0]])
      } finally {
        await server?.kill()
        await Promise.all([model.close(), service.close()])
        await place.remove()
      }
    },
  )
})

const cellOf = ({ output }: Run): unknown =>
  output !== null && typeof output === 'object' && 'cell' in output ? output.cell : undefined
