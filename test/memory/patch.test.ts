import { setImmediate } from 'node:timers'
import { expect, test } from 'vitest'
import { applyPatch } from '../../src/memory/patch.ts'

const swap = [
  { old_string: 'a', new_string: 'b', replace_all: true },
  { old_string: 'b', new_string: 'a', replace_all: true },
]

test('memory#25 a long patch lets others in, and ends when the time of its request is up', async () => {
  const operations = Array.from({ length: 2000 }, () => swap).flat()
  const request = new AbortController()
  setImmediate(() => request.abort(new Error('the time is up')))
  await expect(applyPatch('ab'.repeat(500_000), operations, request.signal)).rejects.toThrow('the time is up')
})

test('memory#25 replace_all takes both strings as they are, as often as they fit', async () => {
  const { signal } = new AbortController()
  const all = (content: string, old_string: string, new_string: string): Promise<string> =>
    applyPatch(content, [{ old_string, new_string, replace_all: true }], signal)
  expect(await all('a.b.c', '.', "$&$1$'")).toBe("a$&$1$'b$&$1$'c")
  expect(await all('aaaaa', 'aa', 'b')).toBe('bba')
  expect(await all('xx', 'x', '')).toBe('')
})
