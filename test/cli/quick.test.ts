import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { packageRoot } from '../../src/base/package-root.ts'
import { runQuick as runServer } from '../../src/cli/quick-server.ts'
import { runQuick } from '../../src/cli/quick.ts'
import { runCli, type CliResult } from './run-cli.ts'

const directory = mkdtempSync(join(tmpdir(), 'mem-quick-'))
const file = join(directory, 'w.hcl')
writeFileSync(file, 'workflow "w" {\n  input "a" {}\n  node transform t { template = { a = input.a } }\n}\n')
afterAll(() => rmSync(directory, { recursive: true }))

async function quick(words: string[], program = runQuick): Promise<CliResult | undefined> {
  const written = { stdout: '', stderr: '' }
  const sink = (name: 'stdout' | 'stderr') => ({ write: (text: string) => void (written[name] += text) })
  const stdin = (async function* () {})()
  const code = await program(words, {
    stdin,
    stdout: sink('stdout'),
    stderr: sink('stderr'),
    env: { HOME: directory },
  })
  return code === undefined ? undefined : { code, ...written }
}

const stable = (result: CliResult | undefined) =>
  result && {
    ...result,
    stdout: result.stdout.replace(/\d+ ms/g, 'N ms'),
    stderr: result.stderr.replace(/\d+ ms/g, 'N ms'),
  }

test.each([
  [['run', file, '--input', 'a=1', '--run-id', 'r']],
  [['run', '--input=a=[1]', '-q', '--run-id', 'r', '--concurrency', '2', file]],
  [['run', file, '--run-id', 'r']],
  [['run', file, '--input', 'a=1', '--input', 'b=2', '--dry-run', '--no-color', '--run-id', 'r']],
  [['validate', file, file, '--strict']],
  [['validate', join(directory, 'none.hcl')]],
])('a plain line does what the whole parser makes of it: %j', async (words) => {
  expect(stable(await quick(words))).toEqual(stable(await runCli(words, { env: { HOME: directory } })))
})

test.each([
  [['list']],
  [[]],
  [['run']],
  [['run', '--help']],
  [['run', file, 'more']],
  [['run', file, '--nope']],
  [['run', file, '--input']],
  [['run', file, '--report', '--yes']],
  [['run', file, '--concurrency', 'x']],
  [['run', file, '--output', 'xml']],
  [['run', file, '--no-journal']],
  [['-q', 'run', file]],
])('what is not plain is left to the whole parser: %j', async (words) => {
  expect(await quick(words)).toBeUndefined()
})

test.each([
  [['mcp', '--data-dir', directory]],
  [['serve', '--addr', 'nowhere', '--services', 'memory, platform', '--data-dir', directory]],
  [['gateway', '--addr', 'nowhere', '--data-dir', directory]],
])('a plain line of a server does what the whole parser makes of it: %j', async (words) => {
  expect(stable(await quick(words, runServer))).toEqual(stable(await runCli(words, { env: { HOME: directory } })))
})

test.each([
  [['serve', '--services', 'memory,nope']],
  [['serve', '--no-kernel']],
  [['gateway', 'keys', 'list']],
  [['mcp', 'install', 'cursor']],
])('what is not plain of a server is left to the whole parser: %j', async (words) => {
  expect(await quick(words, runServer)).toBeUndefined()
})

/** Loads a bundle as `bin/mem.js` does; tells what V8 was told before, and whether it took what it had compiled. */
const LOAD = `
  const [v8, vm] = [require('node:v8'), require('node:vm')]
  const { setFlagsFromString } = v8
  const flags = []
  v8.setFlagsFromString = (flag) => (flags.push(flag), setFlagsFromString(flag))
  vm.Script = class extends vm.Script {
    constructor(source, options) {
      super(source, options)
      process.stdout.write(JSON.stringify({ flags, isRejected: this.cachedDataRejected }))
      process.exit()
    }
  }
  require('./bin/quick.js').loadQuick(process.argv[1])
`

const SERVER = ['--gc-memory-reducer-start-delay-ms=300000', '--max-semi-space-size=0']

test.each([
  ['quick', [], []],
  ['quick-server', [], SERVER],
  ['quick-server', ['--max-semi-space-size=32'], SERVER],
])('%s starts with what was compiled of it, under the same flags: %j', (name, started, flags) => {
  const told = execFileSync(process.execPath, [...started, '-e', LOAD, name], { cwd: packageRoot, encoding: 'utf8' })
  expect(JSON.parse(told)).toEqual({ flags, isRejected: false })
})
