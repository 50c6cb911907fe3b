import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { useDirectory, at, write, read, mem, report, statuses } from './commands-support.ts'

useDirectory()

const LOOP = `workflow "w" {
  node loop each { items = [1, 2] }
  node http get { url = "http://127.0.0.1:9/\${loop.item}" }
  node join done {}
  node transform after { template = { all = prev.results } }
  edge each get {}
  edge get done {}
  edge done after {}
}
`

test('runbook#118 --only behind a loop asks for what can be named, --only in its body for no loop', async () => {
  const file = write('loop.hcl', LOOP)
  const list = write('list.json', '{ "results": [7] }')
  expect(await mem(['run', file, '--only', 'after'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('"after" needs the outputs of each, done'),
  })
  const only = await report([file, '--only', 'after', '--mock', `each=${list}`, '--mock', `done=${list}`])
  expect(only.nodes.find(({ id }) => id === 'after')?.output).toEqual({ all: [7] })
  expect(statuses(await report([file, '--only', 'get', '--mock', `get=${list}`]))).toMatchObject({ get: 'succeeded' })
})

test('runbook#118 --only with --resume behind a loop; a refused one leaves the directory as it was', async () => {
  const workflow = `workflow "w" {
  node loop each { items = [1, 2] }
  node transform body { template = { n = loop.item } }
  node join done {}
  node transform after { template = { n = prev.count * TIMES } }
  node transform end { template = { n = prev.n } }
  edge each body {}
  edge body done {}
  edge done after {}
  edge after end {}
}
`
  const file = write('w.hcl', workflow.replace('TIMES', 'tonumber("x${run.workflow}")'))
  expect((await mem(['run', file, '--run-dir', at('run')])).code).toBe(4)
  const journal = read('run/journal.jsonl')
  write('w.hcl', workflow.replace('TIMES', '10'))
  expect(await mem(['run', file, '--resume', at('run'), '--only', 'end'])).toMatchObject({ code: 1 })
  expect(read('run/journal.jsonl')).toBe(journal)
  expect(existsSync(at('run/lock'))).toBe(false)
  const again = await report([file, '--resume', at('run'), '--only', 'after'])
  expect(again.nodes.find(({ id }) => id === 'after')?.output).toEqual({ n: 20 })
})

test('runbook#117 a dry run shows what each pass of a body would do', async () => {
  const { stdout } = await mem(['run', write('loop.hcl', LOOP), '--dry-run'])
  for (const [i, item] of [1, 2].entries()) {
    expect(stdout).toMatch(new RegExp(`each\\[${i}\\]/get \\(http\\) simulated[^]*"url": "http://127.0.0.1:9/${item}"`))
  }
})

test('a report that cannot be written is told behind what is on stdout', async () => {
  expect(await mem(['run', at('hello.hcl'), '--report', at('no/where.json')])).toMatchObject({
    code: 4,
    stdout: expect.stringContaining('workflow "hello" succeeded'),
    stderr: expect.stringContaining(`error: cannot write ${at('no/where.json')}`),
  })
  const failing = write('f.hcl', 'workflow "f" {\nnode transform a { template = tonumber("x${run.id}") }\n}\n')
  expect(await mem(['run', failing, '--report', at('no/where.json')])).toMatchObject({
    code: 4,
    stderr: expect.stringMatching(/warning: cannot write[^]*resume: mem run --resume/),
  })
})

test('the hint how to go on can be pasted into a shell, and keeps the networks denied', async () => {
  const file = write("it's.hcl", 'workflow "f" {\nnode transform a { template = tonumber("x${run.id}") }\n}\n')
  const flags = ['--deny-private-networks', '--allow-host', '10.0.0.1:80', '--run-dir', at('run')]
  expect((await mem(['run', file, ...flags])).stderr).toContain(
    `resume: mem run --resume ${at('run')} '${at("it'\\''s.hcl")}' --allow-host 10.0.0.1:80 --deny-private-networks\n`,
  )
})

test('a report goes through a link into its file, and into a pipe or device that stays one', async () => {
  writeFileSync(at('target.json'), 'old')
  symlinkSync(at('target.json'), at('link.json'))
  expect((await mem(['run', at('hello.hcl'), '--report', at('link.json')])).code).toBe(0)
  expect(lstatSync(at('link.json')).isSymbolicLink()).toBe(true)
  expect(JSON.parse(read('target.json'))).toMatchObject({ status: 'succeeded' })
  execFileSync('sh', ['-c', 'mkfifo "$0"', at('pipe')])
  const reader = spawn('cat', [at('pipe')])
  const shown = text(reader.stdout)
  expect((await mem(['run', at('hello.hcl'), '--report', at('pipe')])).code).toBe(0)
  expect(JSON.parse(await shown)).toMatchObject({ status: 'succeeded' })
  expect(lstatSync(at('pipe')).isFIFO()).toBe(true)
})

test('plan says where a local cannot be evaluated', async () => {
  const file = write('l.hcl', 'workflow "l" {\nlocals {\na = tonumber("x${run.id}")\n}\n}\n')
  expect(await mem(['plan', file])).toMatchObject({
    code: 1,
    stderr: `error: ${file}:3:14: expected a number, found a string\n`,
  })
})

test('validate of a directory without workflows is no success', async () => {
  mkdirSync(at('empty'))
  expect(await mem(['validate', at('empty')])).toMatchObject({
    code: 1,
    stderr: `error: ${at('empty')} holds no .hcl or .wf file\n`,
  })
})

test('runbook#94 a channel whose variable is not set', async () => {
  const config = write('mem.yaml', 'runbook:\n  channels:\n    ops: { type: chat_b, webhook_url_env: HOOK }\n')
  const file = write('c.hcl', 'workflow "c" {\nnode chat_b a {\nchannel = "ops"\ncontent = "x"\n}\n}\n')
  const { stderr } = await mem(['run', file, '--config', config])
  expect(stderr).toContain('the variable that webhook_url_env of channel "ops" names is not set')
})

test('runbook#126 the journal of another workflow is refused for what differs', async () => {
  const other = 'workflow "o" {\nnode transform a { template = base64encode(secret.key) }\n}\n'
  const key = write('key', 'a long secret')
  const args = ['--secret', `key=file:${key}`, '--run-dir', at('run')]
  expect((await mem(['run', write('o.hcl', other), ...args])).code).toBe(0)
  expect(readFileSync(at('run/journal.jsonl'), 'utf8')).toContain('"redacted":true')
  const { code, stderr } = await mem(['run', at('hello.hcl'), '--resume', at('run')])
  expect({ code, stderr }).toMatchObject({ code: 4, stderr: expect.stringContaining('RB607') })
})

test.each([
  ['run', 'only', 'until'],
  ['run', 'resume', 'from-failed'],
  ['plan', 'only', 'until'],
])('mem %s takes --%s or --%s', async (verb, one, other) => {
  expect(await mem([verb, at('hello.hcl'), `--${one}`, 'greet', `--${other}`, 'greet'])).toMatchObject({
    code: 1,
    stdout: '',
    stderr: `error: give --${one} or --${other}, not both\n`,
  })
})

test('a run directory whose process was killed is not kept for ever', async () => {
  const env = { MEM_RUNBOOK_KEEP_RUNS: '1', MEM_RUNBOOK_STATE_DIR: at('state') }
  const file = write('f.hcl', 'workflow "f" {\nnode transform a { template = tonumber("x${run.id}") }\n}\n')
  for (const id of ['cut', 'killed', 'used', 'last']) {
    await mem(['run', file, '--run-id', id], { env })
    if (id === 'cut') writeFileSync(at('state/cut/lock'), '')
    if (id === 'killed') writeFileSync(at('state/killed/lock'), String(spawnSync('true').pid))
    if (id === 'used') writeFileSync(at('state/used/lock'), String(process.ppid))
  }
  expect(readdirSync(at('state')).toSorted()).toEqual(['last', 'used'])
})
