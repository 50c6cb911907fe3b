import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createPlace as createStores, exported, verified, within } from '../memory/export/place.ts'
import { live, type Step } from '../memory/export/story.ts'
import { runProgram } from '../support/program.ts'

const works = (command: string, ...args: string[]): boolean => spawnSync(command, args).status === 0
const canMount = process.getuid?.() === 0 && works('mountpoint', '/dev/shm')

const STEPS: Step[] = Array.from({ length: 300 }, (_, which) => ({
  op: 'imprint',
  text: `The keeper reads page ${which}.`,
  which: 0,
  tag: 'topic',
}))

/** A file system of its own, gone after the test. */
function mount(directory: string, size: string): void {
  mkdirSync(directory, { mode: 0o700 })
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=700`, 'tmpfs', directory])
  onTestFinished(() => void execFileSync('umount', ['--lazy', directory]))
}

it.skipIf(!canMount)('an export or import that meets a full disk says so, and with room it works', async () => {
  const [here, there] = [await createStores(), await createStores()]
  onTestFinished(async () => {
    await here.remove()
    await there.remove()
  })
  await within(here, (memory) => live(memory, STEPS))
  const text = await exported(here)

  const small = join(here.directory, 'small')
  mount(small, '100k')
  const out = await runProgram(['export', join(small, 'all.jsonl')], here)
  expect(out).toMatchObject({ code: 4, stdout: '', stderr: expect.stringMatching(/cannot write .*ENOSPC/) })
  expect(readdirSync(small)).toEqual([])

  mount(join(there.directory, 'data'), '1100k')
  writeFileSync(join(there.directory, 'all.jsonl'), text)
  const into = await runProgram(['import', 'all.jsonl'], there)
  expect(into).toMatchObject({ code: 4, stdout: '' })
  expect(into.stderr).toMatch(/the disk is full\n {2}Make room and run it again/)
  execFileSync('mount', ['-o', 'remount,size=100m', join(there.directory, 'data')])
  expect(await verified(there)).toEqual([])
  expect(await runProgram(['import', 'all.jsonl'], there)).toMatchObject({ code: 0 })
  expect(await exported(there)).toBe(text)
})
