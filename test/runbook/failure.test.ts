import { describe, expect, test } from 'vitest'
import { edges, node, output, Probe, run, statuses } from './support.ts'

describe('on_error', () => {
  test('runbook#68 fail: nothing further starts, earlier outputs are kept', async () => {
    const report = await run(`
      node probe a { value = 1 }
      node probe b { fail = "not_found" }
      node probe c {}
      ${edges('a b c')}`)
    expect(report).toMatchObject({
      status: 'failed',
      exitCode: 4,
      error: { code: 'not_found', class: 'client_error', node: 'b', attempts: 1 },
    })
    expect(statuses(report)).toEqual({ a: 'succeeded', b: 'failed', c: 'not_run' })
    expect(output(report, 'a')).toBe(1)
  })

  test('runbook#69 continue: the run succeeds and nodes.x.error is usable', async () => {
    const report = await run(`
      node probe a { 
        fail = "forbidden"
        on_error = "continue"
      }
      node probe b { value = [nodes.a.error.code, nodes.a.output, nodes.a.status, prev] }
      ${edges('a b')}`)
    expect(report).toMatchObject({
      status: 'succeeded',
      exitCode: 0,
      toleratedFailures: [{ node: 'a', code: 'forbidden' }],
    })
    expect(output(report, 'b')).toEqual(['forbidden', null, 'failed', null])
  })

  test('runbook#70 branch: only the error edge is live, prev is the error', async () => {
    const report = await run(`
      node probe a { fail = "conflict" }
      node probe ok {}
      node probe handler { value = prev.error.message }
      ${edges('a ok')}
      edge a handler { on = "error" }`)
    expect(statuses(report)).toEqual({ a: 'failed', ok: 'unreached', handler: 'succeeded' })
    expect(output(report, 'handler')).toBe('a failed')
    expect(report).toMatchObject({ status: 'succeeded', toleratedFailures: [{ node: 'a' }] })
  })

  test('runbook#71 an always edge after a failure: cleanup runs, the run fails', async () => {
    const report = await run(`
      node probe a { fail = "conflict" }
      node probe cleanup {}
      edge a cleanup { on = "always" }`)
    expect(statuses(report)).toEqual({ a: 'failed', cleanup: 'succeeded' })
    expect(report).toMatchObject({ status: 'failed', exitCode: 4, error: { node: 'a' }, toleratedFailures: [] })
  })

  test('of several failures the first in plan order is the error of the run', async () => {
    const report = await run(`
      node probe a { 
        ms = 20
        fail = "not_found"
      }
      node probe b { fail = "conflict" }
      node probe x {}
      node probe y {}
      edge a x { on = "always" }
      edge b y { on = "always" }`)
    expect(report.error).toMatchObject({ node: 'a' })
  })
})

describe('attempts', () => {
  const retried = (retry: string, rest: string) => `node probe a {\n${rest}\nretry {\nbackoff = "1ms"\n${retry}\n}\n}`

  test('runbook#72 two 503, then success: three attempts', async () => {
    const report = await run(retried('', 'fail = "http_status"\nstatus = 503\nfailures = 2\nvalue = "ok"'))
    expect(node(report, 'a')).toMatchObject({
      status: 'succeeded',
      output: 'ok',
      attempts: [{ error: { code: 'http_status', class: 'server_error' } }, { error: { class: 'server_error' } }, {}],
    })
  })

  test('runbook#73 400 is tried once, with on = ["http_status"] three times', async () => {
    const bad = 'fail = "http_status"\nstatus = 400'
    expect(node(await run(retried('', bad)), 'a')?.attempts).toHaveLength(1)
    expect((await run(retried('on = ["http_status"]', bad))).error).toMatchObject({
      attempts: 3,
      class: 'client_error',
    })
  })

  test('runbook#75 an attempt over its limit is retried, then on_error applies', async () => {
    const report = await run(retried('attempts = 2', 'ms = 1000\ntimeout = "10ms"\non_error = "continue"'))
    expect(node(report, 'a')).toMatchObject({ status: 'failed', error: { code: 'timeout', attempts: 2 } })
    expect(report.exitCode).toBe(0)
  })

  test('runbook#76 the run limit', async () => {
    const report = await run('timeout = "20ms"\nnode delay a { seconds = 10 }\nnode probe b {}\nedge a b {}')
    expect(report).toMatchObject({ status: 'timed_out', exitCode: 4 })
    expect(statuses(report)).toEqual({ a: 'cancelled', b: 'not_run' })
  })

  test('runbook#137 a signal cancels the run', async () => {
    const controller = new AbortController()
    const probe = new Probe()
    const running = run(
      'node probe a { ms = 10000 }\nnode probe b {}\nedge a b {}',
      { signal: controller.signal },
      probe,
    )
    while (probe.running === 0) await new Promise((resolve) => setImmediate(resolve))
    controller.abort()
    expect(await running).toMatchObject({ status: 'cancelled', exitCode: 130 })
  })
})

describe('triggers and types without executor', () => {
  const manual = 'node manual t {}\nnode probe a { value = [prev, trigger] }\nedge t a {}'

  test.each([
    [{ data: { x: 1 }, other: 2 }, [{ x: 1 }, { data: { x: 1 }, other: 2 }]],
    [{ x: 1 }, [{ x: 1 }, { x: 1, data: { x: 1 } }]],
    [[1], [[1], { data: [1] }]],
    [undefined, [{}, { data: {} }]],
  ])('runbook#77 trigger data %j', async (triggerData, expected) => {
    expect(output(await run(manual, { triggerData }), 'a')).toEqual(expected)
  })

  test('runbook#78 inputs of a trigger: defaults and types', async () => {
    const text =
      'node manual t { inputs = { n = "number", m = { type = "string", default = "d" }, r = { type = "bool", required = true } } }'
    expect(output(await run(text, { triggerData: { n: '1', r: true } }), 't')).toEqual({ n: 1, m: 'd', r: true })
    expect(await run(text, { triggerData: { n: 'x', r: true } })).toMatchObject({ error: { code: 'payload_invalid' } })
    expect(await run(text, { triggerData: { n: 1 } })).toMatchObject({ error: { code: 'payload_invalid' } })
  })

  test('runbook#79 with --trigger the other triggers do not fire', async () => {
    const report = await run(
      'node manual a {}\nnode cron b { expression = "0 8 * * *" }\nnode probe x {}\nnode probe y {}\nedge a x {}\nedge b y {}',
      { trigger: 'b' },
    )
    expect(statuses(report)).toEqual({ a: 'unreached', x: 'unreached', b: 'succeeded', y: 'succeeded' })
  })

  test.each([
    ['tool_debug', ''],
    ['tool_mcp', 'toolName = "t"\ntoolDescription = "d"\ncommand = "c"'],
    ['tool_memory', ''],
    ['tool_vectordb', ''],
  ])('runbook#80 %s stops the run', async (type, attributes) => {
    const report = await run(`
      node probe a {}
      node ${type} t {
        ${attributes}
        on_error = "continue"
        retry {}
      }
      node probe c {}
      ${edges('a t c')}`)
    expect(report).toMatchObject({
      status: 'failed',
      exitCode: 4,
      error: { code: 'no_executor', message: `no executor registered for step type "${type}"` },
    })
    expect(statuses(report)).toEqual({ a: 'succeeded', t: 'failed', c: 'not_run' })
  })

  test('runbook#81 a tool node whose when is false does not stop the run', async () => {
    expect(await run('node tool_debug t { when = false }')).toMatchObject({ status: 'succeeded', exitCode: 0 })
  })

  test('a manual trigger with confirmation asks', async () => {
    const text = 'node manual t { confirmation = true }'
    expect(await run(text)).toMatchObject({ error: { code: 'refused' } })
    expect(await run(text, { confirm: () => Promise.resolve(true) })).toMatchObject({ status: 'succeeded' })
    // nobody answers: the limit of the run holds all the same
    let given: AbortSignal | undefined
    const confirm = (_: string, signal: AbortSignal): Promise<boolean> => {
      given = signal
      return new Promise(() => undefined)
    }
    expect(await run(text, { confirm, timeoutMs: 10 })).toMatchObject({ status: 'timed_out', exitCode: 4 })
    expect(given?.aborted).toBe(true)
  })
})
