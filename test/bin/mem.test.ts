import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../src/base/package-root.ts'
import { version } from '../../src/base/version.ts'

describe('the programs of a checkout that is not built', () => {
  const checkout = mkdtempSync(join(tmpdir(), 'mem-test-bin-'))
  beforeAll(() => {
    for (const name of ['bin', 'package.json'])
      cpSync(join(packageRoot, name), join(checkout, name), { recursive: true })
  })
  afterAll(() => rmSync(checkout, { recursive: true }))

  const run = (name: string, ...args: string[]): [number | null, string, string] => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(checkout, 'bin', name), ...args], {
      encoding: 'utf8',
    })
    return [status, stdout, stderr]
  }

  it.each(['mem.js', 'mem-cli.js', 'mem-core.js', 'openseal.js'])('%s tells its version', (name) => {
    expect(run(name, '--version')).toEqual([0, `${version}\n`, ''])
    expect(run(name, '-V')).toEqual([0, `${version}\n`, ''])
  })

  it('says what to do for anything else', () => {
    const [status, stdout, stderr] = run('mem.js', 'list')
    expect([status, stdout]).toEqual([4, ''])
    expect(stderr).toContain('npm run build')
  })
})

describe('the programs of a checkout that is built', () => {
  const directory = mkdtempSync(join(tmpdir(), 'mem-test-bin-'))
  const file = join(directory, 'hello.hcl')
  writeFileSync(file, 'workflow "hello" {\n  node set greet { variables = yamldecode("a: 1") }\n}\n')
  afterAll(() => rmSync(directory, { recursive: true }))

  const run = (words: string[], ...flags: string[]): unknown => {
    const env = { ...process.env, HOME: directory }
    const program = join(packageRoot, 'bin/openseal.js')
    const { status, stdout, stderr } = spawnSync(process.execPath, [...flags, program, ...words], {
      encoding: 'utf8',
      env,
    })
    return [status, ...[stdout, stderr].map((text) => text.replaceAll(/\d+ ms/g, 'N ms'))]
  }

  it.each([
    ['run', file, '--run-id', 'r'],
    ['validate', file],
    ['run', join(directory, 'none.hcl')],
    ['serve', '--config', join(directory, 'none.yaml')],
    ['gateway', '--addr', 'nowhere', '--data-dir', directory],
    ['gateway', 'keys', '--nope'],
    ['mcp', '--data-dir', directory],
    ['mcp', 'install', '--help'],
  ])('does %s quickly as it does at length, and where the code cache is no good', (...words) => {
    const quick = run(words)
    expect(run(['--no-color', ...words])).toEqual(quick)
    expect(run(words, '--stack-size=900')).toEqual(quick)
  })
})
