import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, expect, test } from 'vitest'
import { packageRoot } from '../../src/base/package-root.ts'
import { MemoryClient } from '../../src/client/memory-client.ts'
import { freePort } from '../support/ports.ts'

/** A device that has no room for anything. */
const FULL = '/dev/full'
const directory = mkdtempSync(join(tmpdir(), 'mem-test-full-output-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** The built program with one of its outputs on a full disk, the other one read. */
function start(args: string[], full: 'stdout' | 'stderr'): ChildProcess {
  const disk = openSync(FULL, 'w')
  return spawn(process.execPath, [join(packageRoot, 'bin/mem.js'), ...args], {
    cwd: directory,
    env: { PATH: process.env['PATH'], HOME: directory },
    stdio: ['ignore', full === 'stdout' ? disk : 'pipe', full === 'stderr' ? disk : 'pipe'],
  })
}

test.skipIf(!existsSync(FULL))('memory#139 an answer that cannot be written is a local failure: 4', async () => {
  const child = start(['print-config'], 'stdout')
  const ended = once(child, 'close')
  const said = child.stderr ? await text(child.stderr) : ''
  await ended
  const { exitCode, signalCode } = child
  expect({ said, exitCode, signalCode }).toEqual({
    said: expect.stringMatching(/^error: cannot write to standard output: .*no space left.*\n$/),
    exitCode: 4,
    signalCode: null,
  })
})

test.skipIf(!existsSync(FULL))('a server whose log cannot be written serves on', async () => {
  const addr = `127.0.0.1:${await freePort()}`
  const child = start(['serve', '--addr', addr, '--data-dir', join(directory, 'data')], 'stderr')
  const ended = once(child, 'close')
  try {
    if (child.stdout) await once(child.stdout, 'data') // it greets when it listens
    const client = new MemoryClient(`http://${addr}`)
    const { id } = await client.createWorkspace({ name: 'unheard' })
    expect(await client.getWorkspace(id)).toMatchObject({ name: 'unheard' })
  } finally {
    child.kill('SIGTERM')
    await ended
  }
  expect(child.exitCode).toBe(0)
})
