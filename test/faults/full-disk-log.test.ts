import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { LineBuffer } from '../../src/base/line-buffer.ts'

const canMount = process.getuid?.() === 0 && spawnSync('mountpoint', ['/dev/shm']).status === 0
const LINE = `${'x'.repeat(999)}\n`

test.skipIf(!canMount)('a line that a full disk cut is ended before the next one', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'mem-test-log-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', directory])
  try {
    const [path, ballast] = [join(directory, 'log'), join(directory, 'ballast')]
    writeFileSync(ballast, Buffer.alloc(32 * 1024))
    const buffer = new LineBuffer(openSync(path, 'a'))
    for (let i = 0; i < 40; i++) buffer.write(LINE)
    await expect.poll(() => buffer.lost).toBeGreaterThan(0)
    buffer.write('lost as well\n')
    const lost = buffer.lost
    await expect.poll(() => buffer.lost).toBeGreaterThan(lost)
    const cut = readFileSync(path, 'utf8')
    expect(cut.endsWith('\n')).toBe(false)
    rmSync(ballast)
    buffer.write('one\n')
    buffer.write('two\n')
    await expect.poll(() => readFileSync(path, 'utf8')).toBe(`${cut}\none\ntwo\n`)
    expect(buffer.lost).toBe(0)
  } finally {
    execFileSync('umount', ['--lazy', directory])
    rmSync(directory, { recursive: true })
  }
})
