import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { runProgram, spawnProgram } from '../support/program.ts'

/** Counts requests by path; `/wait` answers when the test lets it. */
const requests: string[] = []
const waiting: ServerResponse[] = []
const server = createServer(({ url = '' }, response) => {
  requests.push(url)
  if (url === '/wait') {
    waiting.push(response)
    server.emit('waiting')
  } else response.end('{}')
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'mem-resume-'))
  requests.length = 0
  waiting.length = 0
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const at = (name: string): string => join(directory, name)
const mem = (args: string[], env: Record<string, string> = {}) => runProgram(args, { directory, env })
const answer = (): void => waiting.forEach((response) => response.end('{}'))

/** Three requests in a row, the middle one waiting. */
const THREE = `workflow "w" {
  input "url" {
    type = string
  }
  node http first { url = "\${input.url}/first" }
  node http middle { url = "\${input.url}/wait" }
  node http last { url = "\${input.url}/last" }
  edge first middle {}
  edge middle last {}
}
`

/** Starts a run of `file` and kills it while the middle request is open. */
async function killedRun(args: string[], signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  const child = spawnProgram(['run', ...args], { directory })
  child.stdin.end()
  child.stdout.resume()
  child.stderr.resume()
  const reached = once(server, 'waiting')
  const ended = once(child, 'close')
  await reached
  child.kill(signal)
  await ended
}

test('runbook#129 kill -9 with a journal: what finished is reused, what ran with effects is asked about', async () => {
  writeFileSync(at('w.hcl'), THREE)
  const input = ['--input', `url=${url}`]
  await killedRun(['w.hcl', ...input, '--run-dir', 'run'])
  expect(requests).toEqual(['/first', '/wait'])
  const journal = readFileSync(at('run/journal.jsonl'), 'utf8')
  // the lock of a process that is gone counts for nothing
  expect(existsSync(at('run/lock'))).toBe(true)

  const refused = await mem(['run', 'w.hcl', '--resume', 'run'])
  expect(refused).toMatchObject({ code: 4, stderr: expect.stringContaining('middle was running') })
  expect(refused.stderr).toContain('--yes')
  expect(readFileSync(at('run/journal.jsonl'), 'utf8')).toBe(journal)
  expect(requests).toHaveLength(2)

  const resumed = mem(['run', 'w.hcl', '--resume', 'run', '--yes', '--output', 'json'])
  await once(server, 'waiting')
  answer()
  const { code, stdout } = await resumed
  expect(code).toBe(0)
  expect(requests).toEqual(['/first', '/wait', '/wait', '/last'])
  const nodes: { id: string; reused?: boolean }[] = JSON.parse(stdout).nodes
  expect(nodes.map(({ id, reused = false }) => [id, reused])).toEqual([
    ['first', true],
    ['middle', false],
    ['last', false],
  ])

  // all of it is finished now: another resume sends nothing
  const again = await mem(['run', 'w.hcl', '--resume', 'run', '--output', 'json'])
  expect(again.code).toBe(0)
  expect(JSON.parse(again.stdout)).toMatchObject({ run: { attempt: 3 } })
  expect(requests).toHaveLength(4)
})

test('runbook#129 journal: always in the configuration does the same; a resume that is killed is asked about too', async () => {
  writeFileSync(at('w.hcl'), THREE)
  writeFileSync(at('mem.yaml'), 'runbook:\n  journal: always\n')
  await killedRun(['w.hcl', '--input', `url=${url}`, '--run-id', 'r1'])
  await killedRun(['w.hcl', '--resume', '.mem/runs/r1', '--yes'])
  const third = await mem(['run', 'w.hcl', '--resume', '.mem/runs/r1'])
  expect(third).toMatchObject({ code: 4, stderr: expect.stringContaining('middle was running') })
  expect(requests).toEqual(['/first', '/wait', '/wait'])
})

test('runbook#132 a second process on the directory: 4; a run directory keeps to its owner', async () => {
  writeFileSync(at('w.hcl'), THREE)
  const child = spawnProgram(['run', 'w.hcl', '--input', `url=${url}`, '--run-dir', 'run'], { directory })
  child.stdin.end()
  const output = Promise.all([text(child.stdout), text(child.stderr)])
  await once(server, 'waiting')
  const second = await mem(['run', 'w.hcl', '--resume', 'run', '--yes'])
  expect(second).toMatchObject({ code: 4, stdout: '', stderr: expect.stringContaining('RB609') })
  expect(second.stderr).toContain(`process ${child.pid} uses this run directory`)
  expect(statSync(at('run')).mode & 0o777).toBe(0o700)
  for (const name of readdirSync(at('run'))) expect(statSync(at(`run/${name}`)).mode & 0o777).toBe(0o600)
  answer()
  await output
  expect(requests).toEqual(['/first', '/wait', '/last'])
  expect(existsSync(at('run/lock'))).toBe(false)
})

test('runbook#132 a torn last line is ignored, and does not spoil what follows it', async () => {
  writeFileSync(at('w.hcl'), THREE)
  const input = ['--input', `url=${url}`]
  await killedRun(['w.hcl', ...input, '--run-dir', 'run'])
  writeFileSync(at('run/journal.jsonl'), '{"type":"node","path":"mid', { flag: 'a' })
  await killedRun(['w.hcl', '--resume', 'run', '--yes'])
  const resumed = mem(['run', 'w.hcl', '--resume', 'run', '--yes'])
  await once(server, 'waiting')
  answer()
  expect(await resumed).toMatchObject({ code: 0 })
  expect(requests.filter((path) => path === '/first')).toHaveLength(1)
})

test('runbook#116 one Ctrl-C ends the program before the time limit of what it cancels', async () => {
  const file = 'workflow "w" {\n  node http wait {\n    url = "' + url + '/wait"\n    timeout = "1h"\n  }\n}\n'
  writeFileSync(at('w.hcl'), file)
  const child = spawnProgram(['run', 'w.hcl', '--report', 'report.json'], { directory })
  child.stdin.end()
  child.stdout.resume()
  child.stderr.resume()
  await once(server, 'waiting')
  const ended = once(child, 'exit')
  child.kill('SIGINT')
  await ended
  expect(child.exitCode).toBe(130)
  expect(JSON.parse(readFileSync(at('report.json'), 'utf8'))).toMatchObject({
    status: 'cancelled',
    nodes: [{ status: 'cancelled', error: { code: 'cancelled' } }],
  })
})

test('runbook#130 a rotated secret: the new one is sent, the old one is nowhere on disk', async () => {
  const sent: (string | undefined)[] = []
  const guarded = createServer(({ headers }, response) => {
    sent.push(headers.authorization)
    response.statusCode = headers.authorization === 'Bearer new-secret-2' ? 200 : 401
    response.end(JSON.stringify({ echo: headers.authorization }))
  })
  guarded.listen(0, '127.0.0.1')
  await once(guarded, 'listening')
  const { port } = guarded.address() as AddressInfo
  writeFileSync(
    at('w.hcl'),
    `workflow "w" {
  node transform line { template = { text = "token \${secret.key}" } }
  node http call {
    url  = "http://127.0.0.1:${port}/\${urlencode(secret.key)}"
    auth = { bearer = secret.key }
  }
  node transform both { template = { text = nodes.line.output.text == "token \${secret.key}" } }
  edge line call {}
  edge call both {}
}
`,
  )
  const run = (value: string, ...flags: string[]) =>
    mem(['run', 'w.hcl', '--secret', 'key=env:KEY', '--output', 'json', ...flags], { KEY: value })
  const failed = await run('old-secret-1', '--run-id', 'r1', '--report', 'report.json')
  expect(failed).toMatchObject({ code: 4, stderr: expect.stringContaining('401') })
  const resumed = await run('new-secret-2', '--resume', '.mem/runs/r1')
  guarded.close()
  expect(resumed.code).toBe(0)
  expect(sent).toEqual(['Bearer old-secret-1', 'Bearer new-secret-2'])
  expect(JSON.parse(resumed.stdout).nodes[2].output).toEqual({ text: true })
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  for (const { parentPath, name } of files)
    expect(readFileSync(join(parentPath, name), 'utf8')).not.toMatch(/old-secret-1|new-secret-2/)
  expect(failed.stdout + failed.stderr + resumed.stdout + resumed.stderr).not.toMatch(/old-secret-1|new-secret-2/)
})

test('a sensitive input is asked for again', async () => {
  writeFileSync(
    at('w.hcl'),
    `workflow "w" {
  input "pin" {
    type      = string
    default   = "none"
    sensitive = true
  }
  node transform a { template = { pin = input.pin } }
  node transform b { template = { n = tonumber(env.N) } }
  edge a b {}
}
`,
  )
  const flags = ['--env', 'N', '--output', 'json']
  await mem(['run', 'w.hcl', ...flags, '--run-id', 'r1', '--input', 'pin=very-secret'], { N: 'x' })
  const resume = ['run', 'w.hcl', ...flags, '--resume', '.mem/runs/r1']
  expect(await mem(resume, { N: '1' })).toMatchObject({ code: 1, stderr: expect.stringContaining('RB602') })
  const { code, stdout } = await mem([...resume, '--input', 'pin=very-secret'], { N: '1' })
  expect(code).toBe(0)
  expect(JSON.parse(stdout).nodes).toMatchObject([{ reused: true, output: { pin: '***' } }, { output: { n: 1 } }])
})
