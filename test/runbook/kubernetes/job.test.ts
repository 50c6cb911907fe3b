import { spawnSync } from 'node:child_process'
import { describe, expect, test, vi } from 'vitest'
import type { RunEvent } from '../../../src/runbook/run/options.ts'
import type { KubernetesApi } from '../../support/kubernetes/api.ts'
import { cluster, use } from './support.ts'

const hasPython = spawnSync('python3', ['--version']).status === 0
if (!hasPython) console.warn('skipped: no python3 to run the code of jobs')

const isStream = ({ path, query }: KubernetesApi['calls'][number]): boolean =>
  path.endsWith('/log') || query.watch === 'true'
const code = (api: KubernetesApi, text: string, values: Record<string, unknown> = {}, options = {}) =>
  use(api, 'code', { code: text, ...values }, options)
const nothingLeft = (api: KubernetesApi) =>
  expect([...api.all('Job'), ...api.all('Pod'), ...api.all('Secret')]).toEqual([])

/** Doubles `inputs.n`. */
const DOUBLE = `
import json, os
inputs = json.load(open(os.environ["INPUT_FILE"]))
print("doubling", inputs["n"])
json.dump({"n": inputs["n"] * 2}, open(os.environ["OUTPUT_FILE"], "w"))
`

describe.skipIf(!hasPython)('code in a job', () => {
  test('runbook#101 inputs, result, log, exit code; nothing is left', async () => {
    const api = await cluster()
    const { output, error } = await code(api, DOUBLE, { inputs: { n: 21 } })
    expect(error).toBeUndefined()
    expect(output).toEqual({ result: { n: 42 }, logs: 'doubling 21\n', exitCode: 0 })
    nothingLeft(api)
    const failed = await code(api, 'import sys\nprint("no")\nsys.exit(3)')
    expect(failed.error).toMatchObject({
      code: 'job_failed',
      class: 'client_error',
      details: { exitCode: 3, logs: 'no\n' },
    })
    nothingLeft(api)
    expect((await code(api, 'print("x", end="")')).output).toEqual({ result: null, logs: 'x\n', exitCode: 0 })
    const noJson = 'import os\nopen(os.environ["OUTPUT_FILE"], "w").write("{")'
    expect((await code(api, noJson)).error?.code).toBe('data_invalid')
  })

  test('the pod has no token and no privileges; image, cpu and memory are those of the node', async () => {
    const api = await cluster()
    await code(api, 'pass', { cpu: '500m', memory: '64Mi', image: 'python:3.12.1', timeout: '40s' })
    const { body } = api.calls.find(({ method }) => method === 'POST') ?? {}
    expect(body).toMatchObject({
      kind: 'Job',
      spec: {
        backoffLimit: 0,
        activeDeadlineSeconds: 100,
        template: {
          spec: {
            automountServiceAccountToken: false,
            restartPolicy: 'Never',
            securityContext: { runAsNonRoot: true },
            containers: [
              {
                image: 'python:3.12.1',
                resources: { limits: { cpu: '500m', memory: '64Mi' } },
                securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true },
              },
            ],
          },
        },
      },
    })
    const wrong = await code(api, 'pass', { cpu: 'much' })
    expect(wrong.error).toMatchObject({ code: 'service_rejected', message: expect.stringContaining('"much"') })
    nothingLeft(api)
  })

  test('a large result and a long log come through whole, the log cut to its end', async () => {
    const api = await cluster()
    const text = `
import json, os
for i in range(3000): print(i, "x" * 60)
json.dump("é" * 300000, open(os.environ["OUTPUT_FILE"], "w"))`
    const { output } = await code(api, text)
    const { result, logs } = output as { result: string; logs: string }
    expect(result).toBe('é'.repeat(300_000))
    expect(logs).toHaveLength(64 * 1024)
    expect(logs.endsWith(`2999 ${'x'.repeat(60)}\n`)).toBe(true)
    const large = await code(api, 'import os\nopen(os.environ["OUTPUT_FILE"], "w").write("1" * 5000000)')
    expect(large.error).toMatchObject({ code: 'data_invalid', message: expect.stringContaining('5000000 bytes') })
    nothingLeft(api)
  })

  test('requirements are installed before the code runs', async () => {
    const api = await cluster()
    const { error } = await code(api, 'print("never")', { requirements: ['/no/such/package==1.0'] })
    expect(error).toMatchObject({ code: 'job_failed', details: { exitCode: 1 } })
    expect(error?.details?.logs).toContain('/no/such/package')
    expect(error?.details?.logs).not.toContain('never')
  })

  test('streams that are cut are taken up again: no line twice, none lost', async () => {
    const api = await cluster()
    const seen: unknown[] = []
    const lines = `
import json, os, time
for i in range(40):
    print("line", i)
    if i % 10 == 0: time.sleep(0.02)
json.dump(list(range(5000)), open(os.environ["OUTPUT_FILE"], "w"))`
    let cuts = 0
    // each stream breaks in the middle of a line, later and later
    api.fault = (call) => (isStream(call) ? { cut: cuts++ * 7 } : undefined)
    const onEvent = ({ event, message }: RunEvent) => event === 'node.log' && seen.push(message)
    const { output, error } = await code(api, lines, { stream: true }, { onEvent })
    expect(error).toBeUndefined()
    expect((output as { result: number[] }).result).toHaveLength(5000)
    expect(seen).toEqual(Array.from({ length: 40 }, (_, i) => `line ${i}`))
    expect(cuts).toBeGreaterThan(4)
    // a server that restarts, between streams too
    let errors = 0
    api.fault = (call) => (isStream(call) && errors++ < 3 ? { status: 503 } : undefined)
    expect((await code(api, 'print(1)')).output).toEqual({ result: null, logs: '1\n', exitCode: 0 })
    nothingLeft(api)
  })

  test('runbook#101 cancel and time limit remove the job', async () => {
    const api = await cluster()
    const stop = new AbortController()
    const onEvent = ({ event }: RunEvent) => event === 'node.log' && stop.abort()
    const text = 'import time\nprint("started")\ntime.sleep(60)'
    const cancelled = await code(api, text, { stream: true }, { signal: stop.signal, onEvent })
    expect(cancelled.status).toBe('cancelled')
    nothingLeft(api)
    const late = await code(api, text, { timeout: '300ms' })
    expect(late.error?.code).toBe('timeout')
    await vi.waitFor(() => nothingLeft(api))
  })

  test('a container that is killed tells why', async () => {
    const api = await cluster()
    let pod = ''
    api.fault = ({ path }) => {
      pod = /\/pods\/([^/]+)\/log$/.exec(path)?.[1] ?? pod
      return undefined
    }
    const onEvent = ({ event }: RunEvent) => event === 'node.log' && api.killPod(pod)
    const text = 'import time\nprint("hungry")\ntime.sleep(60)'
    const { error } = await code(api, text, { stream: true }, { onEvent })
    expect(error).toMatchObject({
      code: 'job_failed',
      message: 'the job ended with exit code 137 (OOMKilled)',
      details: { exitCode: 137, logs: 'hungry\n' },
    })
    nothingLeft(api)
  })
})

describe('a job that does not start', () => {
  test('an image that cannot be had, a pod that is refused or removed', async () => {
    const api = await cluster()
    const waiting = { reason: 'ImagePullBackOff', message: 'no such image' }
    api.podFate = (pod) =>
      setImmediate(() => api.put({ ...pod, status: { phase: 'Pending', containerStatuses: [{ state: { waiting } }] } }))
    expect((await code(api, 'pass', { image: 'no/such:1' })).error).toMatchObject({
      code: 'job_failed',
      message: expect.stringContaining('ImagePullBackOff: no such image'),
    })
    api.podFate = (pod) => setImmediate(() => api.put({ ...pod, status: { phase: 'Failed', reason: 'Evicted' } }))
    expect((await code(api, 'pass')).error?.message).toContain('Evicted')
    nothingLeft(api)
  })

  test('who may not create jobs, or put secrets there, is told; a job that was made goes', async () => {
    const api = await cluster()
    api.fault = ({ method, path }) => (method === 'POST' && path.endsWith('/jobs') ? { status: 403 } : undefined)
    expect((await code(api, 'pass')).error).toMatchObject({ code: 'forbidden', message: 'code: refused by the test' })
    api.fault = ({ method, path }) => (method === 'POST' && path.endsWith('/secrets') ? { status: 403 } : undefined)
    expect((await code(api, 'pass')).error?.code).toBe('forbidden')
    nothingLeft(api)
    api.fault = () => undefined
    const long = await code(api, 'pass', { inputs: { text: 'x'.repeat(1024 * 1024) } })
    expect(long.error).toMatchObject({ code: 'config_invalid', message: expect.stringContaining('more than 1 MiB') })
  })

  test('a job that could not be removed is told', async () => {
    const api = await cluster()
    const seen: unknown[] = []
    api.podFate = (pod) => setImmediate(() => api.put({ ...pod, status: { phase: 'Failed', reason: 'Evicted' } }))
    api.fault = ({ method }) => (method === 'DELETE' ? { status: 403 } : undefined)
    await code(api, 'pass', {}, { onEvent: ({ message }: RunEvent) => message !== undefined && seen.push(message) })
    expect(seen.join()).toMatch(/the job default\/mem-code-\S+ could not be removed, the cluster will do it: refused/)
  })
})
