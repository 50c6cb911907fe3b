import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Spill } from '../../../src/gateway/metering/spill.ts'

const mayLimit = spawnSync('prlimit', ['--version']).status === 0
/** How long files of this process may become, in bytes. */
const limitFiles = (most: number | 'unlimited'): void =>
  void execFileSync('prlimit', ['--pid', `${process.pid}`, `--fsize=${most}:unlimited`])

async function readAll(spill: Spill): Promise<string[]> {
  const lines: string[] = []
  for (let found = await spill.read(); found; found = await spill.read()) {
    lines.push(...found.lines)
    spill.advance(found.end)
  }
  return lines
}

test.skipIf(!mayLimit)(
  'gateway#92 what a full disk took of the lines is read, and left nowhere to be read later',
  async () => {
    const directory = mkdtempSync(join(tmpdir(), 'mem-test-spill-'))
    onTestFinished(() => rmSync(directory, { recursive: true }))
    const path = join(directory, 'gateway-spill.jsonl')
    const spill = new Spill(path, 'own', 10_000)
    const lines = ['a', 'b', 'c'].map((letter) => letter.repeat(300))
    limitFiles(700)
    await expect(spill.append(lines).finally(() => limitFiles('unlimited'))).rejects.toThrow('EFBIG')
    expect([spill.isEmpty, spill.bytes]).toEqual([false, 700])
    expect(await readAll(spill)).toEqual(lines.slice(0, 2))
    expect([spill.isEmpty, existsSync(path)]).toEqual([true, false])
    expect(await spill.append(lines)).toBe(true)
    expect(await readAll(spill)).toEqual(lines)
  },
)
