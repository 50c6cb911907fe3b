import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach } from 'vitest'
import { KernelClient } from '../../src/client/index.ts'
import { createDefaultAuthorizer } from '../../src/kernel/actions/authorizer.ts'
import { BY_KERNEL, makeChange } from '../../src/kernel/change.ts'
import type { Run } from '../../src/kernel/model/run.ts'
import { moveRun } from '../../src/kernel/run-states.ts'
import { cancelRun } from '../../src/kernel/runs/cancel.ts'
import { saveMoved } from '../../src/kernel/runs/save.ts'
import { insertApproval } from '../../src/kernel/store/approvals.ts'
import { calls } from '../../src/kernel/store/calls.ts'
import { insertRecord, lockRecord } from '../../src/kernel/store/records.ts'
import { insertRun, runs } from '../../src/kernel/store/runs.ts'
import { idleDesk } from '../kernel/actions-support.ts'
import { openKernel, type OpenKernel } from '../kernel/api.ts'
import { approvalOf, callOf, createStorePlace, openStore, runOf } from '../kernel/support.ts'
import { runCli, type CliResult } from './run-cli.ts'

export const TOKEN = 'a-token-of-tests'
export let open: OpenKernel
/** Of the test that runs. */
export let scope: { kind: string; id: string }
export let folder: string
let n = 0

/** A kernel for the tests of a file, with a scope for each of them. */
export function useKernel(): void {
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
}

export const origin = (): string => new URL(open.url).origin
export const mem = (argv: string[], around: Parameters<typeof runCli>[1] = {}): Promise<CliResult> =>
  runCli([...argv, ...(argv.includes('--scope') ? [] : ['--scope', `${scope.kind}:${scope.id}`])], {
    ...around,
    env: { KERNEL_ENDPOINT: origin(), KERNEL_API_TOKEN: TOKEN, ...around.env },
  })
export const client = (): KernelClient => new KernelClient(origin(), { token: TOKEN, scope })

export async function json(argv: string[]) {
  const { code, stdout, stderr } = await mem([...argv, '-o', 'json'])
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

export const createRun = async (goal = 'Count the moons'): Promise<string> =>
  (await mem(['-q', 'runs', 'create', '--goal', goal, '--owner', 'agent:ana'])).stdout.trim()

/** What a worker does with a run. */
export const end = (id: string, to: 'completed' | 'failed' | 'canceled', fields: Partial<Run> = {}): Promise<unknown> =>
  makeChange(open.kernel.context, scope, BY_KERNEL, async (change) => {
    const run = await lockRecord(change.tx, runs, scope, id)
    if (to === 'canceled') return cancelRun(change, run, 'enough')
    const { now } = change
    return saveMoved(change, run, { ...moveRun(moveRun(run, { to: 'running', now }), { to, now }), ...fields })
  })

/** A run that waits for a decision, with its call and approval. */
export async function approvalAsked(): Promise<string> {
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

/** A way to the kernel on which something happens before each request goes on, if it is not cut off. */
export async function openDoor(before: (request: IncomingMessage) => void | Promise<void>) {
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
export async function followed(argv: string[], stdout: string[], stderr: string[] = []): Promise<number> {
  const { runProgram } = await import('../../src/cli/program.ts')
  return runProgram([...argv, '--scope', `${scope.kind}:${scope.id}`], {
    stdin: (async function* () {})(),
    stdout: { write: (text: string) => void stdout.push(...text.trim().split('\n')) },
    stderr: { write: (text: string) => void stderr.push(text) },
    env: { KERNEL_ENDPOINT: origin(), KERNEL_API_TOKEN: TOKEN },
  })
}
