import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { makeDirectory, makeDirectorySync } from '../../src/base/directory.ts'

const root = mkdtempSync(join(tmpdir(), 'mem-test-directory-'))
afterAll(() => rmSync(root, { recursive: true }))

describe.each([
  ['at once', async (path: string) => makeDirectorySync(path)],
  ['while others go on', makeDirectory],
])('directories made %s', (name, make) => {
  const own = join(root, name)

  test('come with those above, for their owner alone; the first one made is told', async () => {
    expect(await make(join(own, 'a/b/c'))).toBe(own)
    expect(statSync(join(own, 'a/b/c')).mode & 0o777).toBe(0o700)
    expect(await make(join(own, 'a/b/c'))).toBeUndefined()
    const near = relative(process.cwd(), join(own, 'near'))
    expect([await make(near), existsSync(near)]).toEqual([near, true])
    await Promise.all([make(join(own, 'at/once')), make(join(own, 'at/once'))])
    expect(existsSync(join(own, 'at/once'))).toBe(true)
  })

  test('where there is a file are refused', async () => {
    const file = `${own}.txt`
    writeFileSync(file, '')
    await expect(make(file)).rejects.toThrow('EEXIST')
    await expect(make(join(file, 'below'))).rejects.toThrow(/EEXIST|ENOTDIR/)
  })

  test.skipIf(!existsSync('/proc/self'))(
    'where a directory takes none are refused, and not for ever tried',
    async () => {
      await expect(make('/proc/x')).rejects.toThrow("ENOENT: no such file or directory, mkdir '/proc/x'")
      await expect(make('/proc/x/y')).rejects.toThrow("mkdir '/proc/x'")
    },
  )
})
