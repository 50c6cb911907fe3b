import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { packageRoot } from '../../src/base/package-root.ts'
import { runProgram, spawnProgram } from '../support/program.ts'

const directory = mkdtempSync(join(tmpdir(), 'mem-e2e-runbook-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const mem = (args: string[], input = '') => runProgram(args, { directory, input })

test('a first workflow: new, validate, plan, run, graph', async () => {
  expect(await mem(['workflow', 'new', 'first'])).toMatchObject({ code: 0, stdout: 'first.hcl  written\n' })
  expect(await mem(['validate', 'first.hcl'])).toMatchObject({
    code: 0,
    stdout: 'first.hcl: valid (2 nodes, 1 edge)\n',
  })
  expect((await mem(['plan', 'first.hcl'])).stdout).toContain('value = Hello world')
  const { code, stdout } = await mem(['run', 'first.hcl', '--input', 'who=you', '--run-id', 'r'])
  expect(code).toBe(0)
  expect(stdout).toMatch(/^workflow "first" succeeded in \d+ ms \(r\)\n/)
  expect(stdout).toContain('"greeting": "Hello you"')
  expect((await mem(['graph', 'first.hcl', '--format', 'svg'])).stdout).toMatch(/^<svg [^]*<\/svg>\n$/)
  expect((await mem(['graph', 'stats'])).stderr).toContain('workspace')
})

test('runbook#112 openseal is the same program', async () => {
  symlinkSync(join(packageRoot, 'bin/openseal.js'), join(directory, 'openseal'))
  writeFileSync(join(directory, 'w.hcl'), 'workflow "w" {\n  node set a {\n    name  = "x"\n    value = 1\n  }\n}\n')
  const { stdout } = await promisify(execFile)(join(directory, 'openseal'), ['run', 'w.hcl', '-q', '--run-id', 'r'], {
    cwd: directory,
    env: { PATH: process.env['PATH'], HOME: directory },
  })
  expect(stdout.replace(/\d+ ms/, 'N ms')).toMatch(/^workflow "w" succeeded in N ms \(r\)\n/)
})

test('runbook#84 a run leaves nothing behind: no store, no journal, no record of itself', async () => {
  const place = mkdtempSync(join(directory, 'clean-'))
  writeFileSync(join(place, 'w.hcl'), 'workflow "w" {\n  node set a {\n    name  = "x"\n    value = 1\n  }\n}\n')
  expect(await runProgram(['run', 'w.hcl'], { directory: place })).toMatchObject({ code: 0 })
  expect(readdirSync(place, { recursive: true })).toEqual(['w.hcl'])
})

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('runbook#116 %s cancels the run, which can be resumed: %i', async (signal, code) => {
  const name = `${signal}.hcl`
  writeFileSync(
    join(directory, name),
    'workflow "w" {\n  node set a {\n    name  = "x"\n    value = 1\n  }\n  node delay long { duration = var.long }\n  edge a long {}\n}\n',
  )
  const child = spawnProgram(['run', name, '--run-id', signal, '--var', 'long="1h"'], { directory })
  child.stdin.end()
  const ended = once(child, 'close')
  const output = Promise.all([text(child.stdout), text(child.stderr)])
  await once(child.stderr, 'data')
  child.kill(signal)
  const [stdout, stderr] = await output
  await ended
  expect({ code: child.exitCode, head: stdout.slice(0, 22) }).toEqual({ code, head: 'workflow "w" cancelled' })
  const runDirectory = join(directory, '.mem/runs', signal)
  expect(stderr).toContain(`resume: mem run --resume ${runDirectory} ${name}`)
  const resumed = await mem(['run', name, '--resume', runDirectory, '--var', 'long=0'])
  expect(resumed).toMatchObject({ code: 0, stdout: expect.stringContaining('a (set) succeeded 0 ms (reused)') })
})

test('importing the client alone does not load the runbook layer', async () => {
  const script = `import { MemoryClient } from ${JSON.stringify(join(packageRoot, 'dist/client.js'))}
    if (!MemoryClient) throw new Error('no client')
    const { readFileSync } = await import('node:fs')
    process.stdout.write(String(process.moduleLoadList.includes('NativeModule crypto')))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
  expect(stdout).toBe('false')
  expect(existsSync(join(directory, '.mem/runs/r'))).toBe(false)
})
