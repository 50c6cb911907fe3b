import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
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
