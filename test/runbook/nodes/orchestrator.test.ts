import { describe, expect, test } from 'vitest'
import type { CodeRunner, OrchestratorClient } from '../../../src/runbook/ports.ts'
import { createNodeRegistry } from '../../../src/runbook/registry.ts'
import { found, node, output, run } from '../support.ts'
import { attributes } from './recorder.ts'

type Job = Awaited<ReturnType<CodeRunner['runJob']>>

/** Answers every call with `answer`, or fails with it, and keeps the requests. */
function fakeClient(answer: unknown) {
  const requests: [string, unknown][] = []
  const reply =
    (name: string) =>
    (request: unknown): Promise<never> => {
      requests.push([name, request])
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer as never)
    }
  const names = ['get', 'list', 'logs', 'events', 'restart', 'scale', 'patch', 'delete', 'runJob']
  const client = Object.fromEntries(names.map((name) => [name, reply(name)])) as unknown as OrchestratorClient
  return { requests, registry: createNodeRegistry({ orchestrator: client }) }
}

const use = (
  type: string,
  values: Record<string, unknown>,
  { registry }: Pick<ReturnType<typeof fakeClient>, 'registry'>,
) => run(`node ${type} n {\n${attributes(values)}\n}`, { registry })

describe('orchestrator nodes', () => {
  test('what only reads is repeated without a question', () => {
    const { registry } = fakeClient({})
    const effects = (...verbs: string[]) => verbs.map((verb) => registry.metadata(`orch_${verb}`)?.effects)
    expect(new Set(effects('get', 'list', 'logs', 'events'))).toEqual(new Set(['read']))
    expect(new Set(effects('restart', 'scale', 'patch', 'delete'))).toEqual(new Set(['external']))
  })

  const target = { clusterId: '1', kind: 'Deployment', name: 'web', namespace: 'shop' }
  const values = { kind: 'Deployment', name: 'web', namespace: 'shop' }
  const named = (name: string, namespace = 'a') => ({ metadata: { name, namespace } })
  const done = (message: string) => ({ success: true, message, name: 'web', kind: 'Deployment' })

  test.each<[string, Record<string, unknown>, unknown, unknown, unknown]>([
    ['k8s-get', values, { spec: 1 }, ['get', target], { object: { spec: 1 } }],
    [
      'orch_list',
      { kind: 'Pod', labelSelector: 'a=b', limit: 2 },
      { items: [named('z'), named('b', 'b'), named('a')] },
      ['list', { clusterId: '1', kind: 'Pod', name: '', labelSelector: 'a=b', limit: 2 }],
      { list: [named('a'), named('z')], count: 2, truncated: true },
    ],
    [
      'orch_logs',
      { podName: 'p', tailLines: 5 },
      { logs: 'x', container: 'main' },
      ['logs', { clusterId: '1', pod: 'p', tailLines: 5 }],
      { logs: 'x', container: 'main', pod: 'p', truncated: false },
    ],
    [
      'orch_events',
      values,
      [{ lastTimestamp: '2026-01-02' }, { eventTime: '2026-01-01' }],
      ['events', target],
      { items: [{ eventTime: '2026-01-01' }, { lastTimestamp: '2026-01-02' }], count: 2 },
    ],
    ['orch_restart', values, undefined, ['restart', target], done('Deployment web restarted')],
    [
      'k8s_scale',
      { ...values, replicas: 3 },
      undefined,
      ['scale', { ...target, replicas: 3 }],
      { ...done('Deployment web scaled to 3'), replicas: 3 },
    ],
    [
      'orch_patch',
      { ...values, patch: '{"spec":{"a":1}}' },
      { ok: 1 },
      ['patch', { ...target, patch: { spec: { a: 1 } }, patchType: 'strategic' }],
      { ...done('Deployment web patched'), object: { ok: 1 } },
    ],
    [
      'orch_delete',
      { ...values, gracePeriodSeconds: 0 },
      undefined,
      ['delete', { ...target, gracePeriodSeconds: 0 }],
      done('Deployment web deleted'),
    ],
  ])('runbook#102 %s: request and output', async (type, given, answer, request, expected) => {
    const fake = fakeClient(answer)
    const report = await use(type, given, fake)
    expect(JSON.parse(JSON.stringify(fake.requests))).toEqual([request])
    expect(output(report, 'n')).toEqual(expected)
  })

  test('runbook#102 404, 403, 409, another status, none', async () => {
    const codes = [404, 403, 409, 422, undefined].map(async (status) => {
      const fake = fakeClient(Object.assign(new Error('refused'), status === undefined ? {} : { status }))
      return node(await use('orch_get', values, fake), 'n')?.error
    })
    const errors = await Promise.all(codes)
    expect(errors.map((error) => error?.code)).toEqual([
      'not_found',
      'forbidden',
      'conflict',
      'service_rejected',
      'network_error',
    ])
    expect(errors[0]?.message).toBe('orch_get: refused')
  })
})

test('runbook#83 registries of 20, 21 and 29 types', () => {
  const { registry } = fakeClient(null)
  const runner: CodeRunner = { runJob: () => Promise.reject(new Error('unused')) }
  const sizes = [createNodeRegistry(), createNodeRegistry({ codeRunner: runner }), registry].map(
    (each) => each.types().length,
  )
  expect(sizes).toEqual([20, 21, 29])
})

test('runbook#82 without a client code and orch_get stop the run, before which validation only warns', async () => {
  for (const [type, values, code] of [
    ['code', { code: 'print(1)' }, 'RB315'],
    ['orch_get', { kind: 'Pod', name: 'p' }, 'RB316'],
  ] as const) {
    const body = `node set a {\nname = "x"\nvalue = 1\n}\nnode ${type} n {\n${attributes(values)}\non_error = "continue"\n}\nedge a n {}`
    expect(found(body).map((each) => `${each.level} ${each.code}`)).toEqual([`warning ${code}`])
    const report = await run(body)
    expect(report).toMatchObject({
      status: 'failed',
      exitCode: 4,
      error: { code: 'no_executor', node: 'n', message: `no executor registered for step type "${type}"` },
    })
    expect(node(report, 'a')?.status).toBe('succeeded')
  }
})

describe('code', () => {
  const job = async (result: Job) => {
    const fake = fakeClient(result)
    const report = await use('code', { code: 'print(1)', inputs: { b: 1, a: [2] }, requirements: ['x==1.0'] }, fake)
    return { report, requests: fake.requests }
  }

  test('a requirement without version is a warning', () => {
    const codes = (requirement: string) =>
      found(`node code n {\ncode = "x"\nrequirements = ["${requirement}"]\n}`).map(({ code }) => code)
    expect(codes('requests>=2')).toContain('RB218')
    expect(codes('requests==2.32.0')).not.toContain('RB218')
  })

  test('runbook#101 result, exit code, broken result', async () => {
    const { report, requests } = await job({ exitCode: 0, logs: 'done', output: '{"n": 1}' })
    expect(requests).toEqual([['runJob', { code: 'print(1)', input: '{"a":[2],"b":1}', requirements: ['x==1.0'] }]])
    expect(output(report, 'n')).toEqual({ result: { n: 1 }, logs: 'done', exitCode: 0 })
    const failed = await job({ exitCode: 3, logs: `${'x'.repeat(70_000)}tail` })
    expect(node(failed.report, 'n')?.error).toMatchObject({ code: 'job_failed', details: { exitCode: 3 } })
    const { logs = '' } = node(failed.report, 'n')?.error?.details ?? {}
    expect(logs).toBe(`${'x'.repeat(65_532)}tail`)
    const broken = await job({ exitCode: 0, logs: '', output: 'no json' })
    expect(node(broken.report, 'n')?.error?.code).toBe('data_invalid')
  })
})
