import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { parse } from 'yaml'
import { HELLO, useDirectory, at, write, read, mem, report, outputs, statuses } from './commands-support.ts'

useDirectory()

describe('mem run', () => {
  test('text: the status, each executed node with its output; progress on stderr', async () => {
    const { code, stdout, stderr } = await mem(['run', at('hello.hcl'), '--run-id', 'r1'])
    expect(code).toBe(0)
    expect(stdout.replace(/\d+ ms/g, 'N ms')).toBe(
      'workflow "hello" succeeded in N ms (r1)\n' +
        'start (manual) succeeded N ms\n  {}\n' +
        'greet (set) succeeded N ms\n  {\n    "greeting": "Hello world"\n  }\n' +
        'twice (transform) succeeded N ms\n  {\n    "text": "Hello world",\n    "n": 2\n  }\n',
    )
    expect(stderr.replace(/\d+ ms/g, 'N ms')).toBe('start succeeded N ms\ngreet succeeded N ms\ntwice succeeded N ms\n')
    expect((await mem(['run', at('hello.hcl'), '--quiet'])).stderr).toBe('')
    expect(existsSync(at('.mem'))).toBe(false)
  })

  test('runbook#112 no FILE and unknown flags: 1', async () => {
    expect(await mem(['run'])).toMatchObject({ code: 1, stderr: expect.stringContaining('mem run --help') })
    expect(await mem(['run', at('hello.hcl'), '--nope'])).toMatchObject({ code: 1, stdout: '' })
    expect(await mem(['run', at('none.hcl')])).toMatchObject({ code: 1, stderr: expect.stringContaining('RB601') })
  })

  test('a workflow from standard input', async () => {
    expect(await mem(['run', '-', '-q'], { stdin: HELLO })).toMatchObject({ code: 0, stderr: '' })
  })

  test('runbook#113 missing, unknown and ill-typed inputs together; a flag beats a file', async () => {
    const file = write('in.hcl', HELLO.replace('default = "world"\n', '\n'))
    const { code, stdout, stderr } = await mem(['run', file, '--input', 'times=many', '--input', 'whom=x'])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    for (const rule of ['RB602', 'RB603', 'RB604']) expect(stderr).toContain(rule)
    write('in.yaml', 'who: file\ntimes: 3\n')
    const shown = await report([file, '--input-file', at('in.yaml'), '--input', 'who=42'])
    expect(outputs(shown)).toMatchObject({ twice: { text: 'Hello 42', n: 6 } })
  })

  test('runbook#114 json, yaml and jsonl; no control codes in a pipe', async () => {
    const json = await mem(['run', at('hello.hcl'), '--output', 'json', '--run-id', 'r'])
    expect(JSON.parse(json.stdout)).toMatchObject({ status: 'succeeded', exitCode: 0, program: { name: 'mem' } })
    const yaml = await mem(['run', at('hello.hcl'), '--output', 'yaml', '--run-id', 'r'])
    expect(parse(yaml.stdout)).toMatchObject({ status: 'succeeded', nodes: [{ id: 'start' }, { id: 'greet' }, {}] })
    const lines = await mem(['run', at('hello.hcl'), '--output', 'jsonl', '--run-id', 'r'])
    const events = lines.stdout
      .trimEnd()
      .split('\n')
      .map((line): { event: string } => JSON.parse(line))
    expect(events[0]).toMatchObject({ event: 'run.started', runId: 'r' })
    expect(events.at(-1)).toMatchObject({ event: 'run.finished', exitCode: 0 })
    expect(json.stdout + json.stderr + yaml.stdout + lines.stdout + lines.stderr).not.toMatch(/(?!\n)\p{Cc}/u)
  })

  test('runbook#115 JSON lines come in plan order, --unordered in order of time', async () => {
    const file = write(
      'two.hcl',
      'workflow "w" {\n node delay slow { milliseconds = 40 }\n node delay quick { milliseconds = 1 }\n}',
    )
    const finished = async (flags: string[]): Promise<(string | undefined)[]> => {
      const { stdout } = await mem(['run', file, '--output', 'jsonl', ...flags])
      const events = stdout
        .trimEnd()
        .split('\n')
        .map((line): { event: string; node?: string } => JSON.parse(line))
      return events.filter(({ event }) => event === 'node.finished').map(({ node }) => node)
    }
    expect(await finished([])).toEqual(['slow', 'quick'])
    expect(await finished(['--unordered'])).toEqual(['quick', 'slow'])
  })

  test('runbook#116 Ctrl-C: cancelled, the report is written, 130', async () => {
    const file = write('long.hcl', 'workflow "w" {\n node delay long { duration = "1h" }\n}')
    const listening = process.listenerCount('SIGINT')
    const running = mem(['run', file, '--report', at('report.json')])
    await expect.poll(() => process.listenerCount('SIGINT')).toBe(listening + 1)
    process.emit('SIGINT', 'SIGINT')
    expect(await running).toMatchObject({ code: 130, stdout: expect.stringContaining('cancelled') })
    expect(process.listenerCount('SIGINT')).toBe(listening)
    expect(JSON.parse(read('report.json'))).toMatchObject({ status: 'cancelled', exitCode: 130 })
    expect(statSync(at('report.json')).mode & 0o777).toBe(0o600)
  })

  test('runbook#116 a second signal ends the program at once', async () => {
    const file = write('long.hcl', 'workflow "w" {\n node delay long { duration = "1h" }\n}')
    const kill = vi.spyOn(process, 'kill').mockReturnValue(true)
    onTestFinished(() => kill.mockRestore())
    const listening = process.listenerCount('SIGINT')
    const running = mem(['run', file])
    await expect.poll(() => process.listenerCount('SIGINT')).toBe(listening + 1)
    process.emit('SIGINT', 'SIGINT')
    expect(kill).not.toHaveBeenCalled()
    process.emit('SIGTERM', 'SIGTERM')
    // nobody listens any more: the signal does what it does to any program
    expect(kill.mock.calls).toEqual([[process.pid, 'SIGTERM']])
    expect(process.listenerCount('SIGINT')).toBe(listening)
    expect((await running).code).toBe(130)
  })

  test('runbook#118 --mock, --until, --only; an unknown id is RB610', async () => {
    write('greet.json', '{"greeting": "mocked"}')
    const mock = ['--mock', `greet=${at('greet.json')}`]
    expect(statuses(await report([at('hello.hcl'), '--until', 'greet']))).toMatchObject({ twice: 'not_run' })
    const only = await report([at('hello.hcl'), '--only', 'greet', '--mock', `start=${at('greet.json')}`])
    expect(outputs(only)).toMatchObject({ greet: { greeting: 'Hello world' } })
    expect(await mem(['run', at('hello.hcl'), '--only', 'twice', ...mock])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('"twice" needs the outputs of start'),
    })
    for (const flag of ['--until', '--only', '--trigger'])
      expect((await mem(['run', at('hello.hcl'), flag, 'gret'])).stderr).toContain('did you mean "greet"')
    expect((await mem(['run', at('hello.hcl'), '--mock', 'x=y'])).stderr).toContain('RB610')
    expect(await mem(['run', at('hello.hcl'), '--trigger', 'greet'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/RB610: --trigger: "greet" is no trigger[^]*Triggers: start/),
    })
    expect((await mem(['run', '-', '--trigger-data', '-'], { stdin: HELLO })).stderr).toContain('standard input')
  })

  test('secrets come from the environment or a file, and are masked', async () => {
    const file = write(
      'secret.hcl',
      'workflow "w" {\n node transform a { template = { v = "key ${secret.k}", e = env.PLACE } }\n}',
    )
    write('key', 's3cret-value\n')
    const flags = ['--env', 'PLACE', '--secret', `k=file:${at('key')}`]
    const { stdout, code } = await mem(['run', file, ...flags], { env: { PLACE: 'here' } })
    expect(code).toBe(0)
    expect(stdout).toContain('"v": "key ***"')
    expect(stdout).toContain('"e": "here"')
    expect(await mem(['run', file, '--env', 'PLACE', '--secret', 'k=env:NOPE'])).toMatchObject({ code: 1 })
    expect((await mem(['run', file, '--secret', 'k=plain'])).stderr).toContain('k=env:NAME or k=file:PATH')
    expect((await mem(['run', file])).stderr).toMatch(/RB606[^]*RB412/)
  })

  test('runbook#110 env.HOME without --env: exit 1, before anything runs', async () => {
    const file = write('env.hcl', 'workflow "w" {\n node transform a { template = { home = env.HOME } }\n}')
    const { code, stdout, stderr } = await mem(['run', file], { env: { HOME: '/home/keeper' } })
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toContain('error[RB412]')
    expect(await mem(['run', file, '--env', 'HOME'], { env: { HOME: '/home/keeper' } })).toMatchObject({ code: 0 })
  })

  test('trigger data: JSON, a file, standard input, or an error', async () => {
    const file = write(
      't.hcl',
      'workflow "w" {\n node manual m {}\n node transform a { template = { n = prev.n } }\n edge m a {}\n}',
    )
    write('data.json', '{"n": 2}')
    const n = async (data: string, stdin = ''): Promise<unknown> =>
      outputs(await report([file, '--trigger-data', data], { stdin }))['a']
    expect([await n('{"data": {"n": 1}}'), await n(at('data.json')), await n('-', '{"n": 3}')]).toEqual([
      { n: 1 },
      { n: 2 },
      { n: 3 },
    ])
    expect((await mem(['run', file, '--trigger-data', '{broken'])).stderr).toContain('RB605')
  })

  test('a node that asks: refused in a pipe, --yes answers, a terminal is asked', async () => {
    const file = write('ask.hcl', 'workflow "w" {\n node manual m { confirmation = true }\n}')
    expect(await mem(['run', file])).toMatchObject({ code: 4, stderr: expect.stringContaining('refused') })
    expect((await mem(['run', file, '--yes'])).code).toBe(0)
    expect((await mem(['run', file, '--dry-run'])).code).toBe(0)
    const text = write('text.hcl', 'workflow "w" {\n node manual m { confirmation = "{{var.ask}}" }\n}')
    expect((await mem(['run', text, '--var', 'ask="true"'])).code).toBe(4)
    expect((await mem(['run', text, '--var', 'ask=maybe'])).stderr).toContain('config_invalid')
    expect((await mem(['run', file], { isTTY: true, stdin: 'y\n' })).code).toBe(0)
    expect((await mem(['run', file], { isTTY: true, stdin: '\n' })).code).toBe(4)
  })

  test('runbook#117 --dry-run sends nothing and marks what is unknown', async () => {
    let requests = 0
    const server = createServer((_, response) => {
      requests++
      response.end('{}')
    })
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    afterAll(() => server.close())
    const { port } = server.address() as AddressInfo
    const file = write(
      'dry.hcl',
      `workflow "w" {\n node http h { url = "http://127.0.0.1:\${${port}}/" }\n node transform t { template = { s = nodes.h.output.statusCode } }\n edge h t {}\n}`,
    )
    const shown = await report([file, '--dry-run'])
    expect(shown).toMatchObject({ status: 'dry_run', nodes: [{ status: 'simulated' }, { status: 'simulated' }] })
    expect(requests).toBe(0)
    expect(outputs(await report([file]))).toMatchObject({ t: { s: 200 } })
    expect(requests).toBe(1)
    const denied = await mem(['run', file, '--deny-private-networks'])
    expect(denied).toMatchObject({ code: 4, stderr: expect.stringContaining('address_refused') })
    const allowed = ['--deny-private-networks', '--allow-host', `127.0.0.1:${port}`]
    expect((await mem(['run', file, ...allowed])).code).toBe(0)
  })

  test('a run directory with a name that leads elsewhere is refused', async () => {
    expect((await mem(['run', at('hello.hcl'), '--run-id', '../x'])).code).toBe(1)
  })
})

describe('a run that failed', () => {
  const BROKEN = 'tonumber("no${var.x}")'
  const failing = (ok: string): string => `workflow "w" {
  input "key" {
    type      = string
    default   = "none"
    sensitive = true
  }
  locals { token = sensitive(upper("very-\${input.key}")) }
  node set a {
    name  = "x"
    value = "1"
  }
  node transform b { template = { t = local.token } }
  node transform c { template = { n = ${ok} } }
  edge a b {}
  edge b c {}
}`

  test('runbook#68 exit 4, earlier outputs, a hint how to go on; the journal holds no secret', async () => {
    const file = write('f.hcl', failing(BROKEN))
    const { code, stdout, stderr } = await mem(['run', file, '--run-id', 'r7', '--input', 'key=open-sesame'])
    expect(code).toBe(4)
    expect(stdout).toMatch(/^workflow "w" failed[^]*a \(set\) succeeded/)
    const directoryOfRun = at('.mem/runs/r7')
    expect(stderr).toContain(`resume: mem run --resume ${directoryOfRun} ${file}`)
    const journal = readFileSync(join(directoryOfRun, 'journal.jsonl'), 'utf8')
    expect(journal).not.toMatch(/open-sesame/i)
    write('f.hcl', failing('tonumber(var.x) + 1'))
    const shown = await report([file, '--resume', directoryOfRun, '--input', 'key=open-sesame'])
    expect(shown).toMatchObject({ status: 'succeeded', run: { id: 'r7', attempt: 2 } })
    expect(shown.nodes.map(({ id, reused = false }) => [id, reused])).toEqual([
      ['a', true],
      ['b', false],
      ['c', false],
    ])
  })

  test('runbook#126 an edited node is refused with 4, --accept-changes runs it', async () => {
    const file = write('f.hcl', failing(BROKEN))
    await mem(['run', file, '--run-id', 'r8'])
    write('f.hcl', failing('1').replace('value = "1"', 'value = "2"'))
    const resume = ['run', file, '--resume', at('.mem/runs/r8')]
    expect(await mem(resume)).toMatchObject({ code: 4, stderr: expect.stringContaining('RB607') })
    expect((await mem([...resume, '--accept-changes'])).code).toBe(0)
  })

  test('runbook#129 what ran with effects when the run was killed is asked about', async () => {
    const file = write('e.hcl', 'workflow "w" {\n node http h { url = "http://127.0.0.1:9/" }\n}')
    await mem(['run', file, '--run-dir', at('run')])
    const journal = read('run/journal.jsonl')
    const lines = journal.split('\n')
    const cut = lines.findIndex((line) => line.includes('"started"')) + 1
    writeFileSync(at('run/journal.jsonl'), `${lines.slice(0, cut).join('\n')}\n`)
    const resume = ['run', file, '--resume', at('run'), '--no-journal']
    expect(await mem(resume)).toMatchObject({ code: 4, stderr: expect.stringContaining('--yes runs it again') })
    expect((await mem([...resume, '--yes'])).stderr).toContain('network_error')
    expect((await mem(resume, { isTTY: true, stdin: 'yes\n' })).stderr).toContain('network_error')
  })

  test('runbook#131 --from-failed goes on from a report; a masked output is refused', async () => {
    const file = write('f.hcl', failing(BROKEN))
    await mem(['run', file, '--no-journal', '--report', at('report.json'), '--input', 'key=open-sesame'])
    const from = ['run', file, '--from-failed', at('report.json')]
    write('f.hcl', failing('prev.t'))
    expect(await mem(from)).toMatchObject({ code: 4, stderr: expect.stringContaining('RB608') })
    write('f.hcl', failing('3').replace('value = "1"', 'value = "2"'))
    expect(await mem(from)).toMatchObject({ code: 4, stderr: expect.stringMatching(/RB607.*node "a"/) })
    expect((await mem([...from, '--accept-changes'])).code).toBe(0)
    const plain = (ok: string): string => failing(ok).replace('local.token', '1')
    write('f.hcl', plain(BROKEN))
    await mem(['run', file, '--no-journal', '--report', at('report.json')])
    write('f.hcl', plain('3'))
    const shown = await report([file, '--from-failed', at('report.json')])
    expect(outputs(shown)).toMatchObject({ c: { n: 3 } })
    expect(shown.nodes[0]).toMatchObject({ reused: true })
  })

  test('the newest runs are kept', async () => {
    const file = write('f.hcl', failing(BROKEN))
    const env = { MEM_RUNBOOK_KEEP_RUNS: '2', MEM_RUNBOOK_STATE_DIR: at('state') }
    for (const id of ['r1', 'r2', 'r3']) await mem(['run', file, '--run-id', id], { env })
    expect(['r1', 'r2', 'r3'].map((id) => existsSync(at(`state/${id}`)))).toEqual([false, true, true])
  })

  test('a journal that cannot be written is a warning; the run keeps its report', async () => {
    const file = write('f.hcl', failing(BROKEN))
    const { code, stdout, stderr } = await mem(['run', file], { env: { MEM_RUNBOOK_STATE_DIR: at('hello.hcl') } })
    expect(code).toBe(4)
    expect(stdout).toContain('a (set) succeeded')
    expect(stderr).toContain('warning: RB609: no journal was written')
  })

  test('a configuration that is no good: 78', async () => {
    expect((await mem(['run', at('hello.hcl')], { env: { MEM_RUNBOOK_CONCURRENCY: 'x' } })).code).toBe(78)
  })
})
