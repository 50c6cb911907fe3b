import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { keyOf, prefixOf } from '../../../src/memory/store/content/store.ts'
import { CONTENT_DRIVERS, createContentPlace, type ContentPlace } from '../../support/contents.ts'

const ESCAPES = ['..', '.', '', 'a/b', '/etc', 'a\0b', 'ä', 'x'.repeat(129), 'a\\b', '%2e%2e']

describe.each(CONTENT_DRIVERS)('a content store in %s', (driver) => {
  let place: ContentPlace
  beforeAll(async () => void (place = await createContentPlace(driver)))
  afterAll(() => place.remove())

  const keysOf = async (prefix: string, after?: string): Promise<string[]> => {
    const keys: string[] = []
    for await (const page of place.store.list(prefix, after)) keys.push(...page.map(({ key }) => key))
    return keys
  }

  test('puts, gets, replaces, lists and deletes', async () => {
    const { store } = place
    const key = keyOf({ workspaceId: 'ws_1', memoryId: 'mem_1', watermark: 'wmk_1' })
    const bytes = Buffer.from([0, 10, 255, 254, 13, 10])
    expect(await store.get([key])).toEqual(new Map())
    expect(await keysOf('ws_1/')).toEqual([])
    await store.put(key, Buffer.from('first'))
    await store.put(key, bytes)
    await store.put(keyOf({ workspaceId: 'ws_1', memoryId: 'mem_2', watermark: 'wmk_2' }), Buffer.alloc(0))
    await store.put(keyOf({ workspaceId: 'ws_10', memoryId: 'mem_1', watermark: 'wmk_3' }), bytes)
    const found = await store.get([key, 'ws_1/mem_1/none', 'ws_1/mem_2/wmk_2'])
    expect(new Map([...found].map(([name, body]) => [name, [...body]]))).toEqual(
      new Map([
        [key, [...bytes]],
        ['ws_1/mem_2/wmk_2', []],
      ]),
    )
    expect(await keysOf(prefixOf('ws_1'))).toEqual([key, 'ws_1/mem_2/wmk_2'])
    expect(await keysOf(prefixOf('ws_1', 'mem_1'))).toEqual([key])
    expect(await keysOf(prefixOf('ws_1'), key)).toEqual(['ws_1/mem_2/wmk_2'])
    await store.delete([key, 'ws_1/mem_1/none'])
    expect(await keysOf('ws_1/')).toEqual(['ws_1/mem_2/wmk_2'])
    await store.ping()
  })

  test('lists more than a page, in order, and gets many at once', async () => {
    const { store } = place
    const keys = Array.from(
      { length: 1100 },
      (_, i) => `ws_many/mem_${String(i % 7)}/wmk_${String(i).padStart(4, '0')}`,
    )
    for (let i = 0; i < keys.length; i += 50) {
      await Promise.all(keys.slice(i, i + 50).map((key) => store.put(key, Buffer.from(key))))
    }
    expect(await keysOf('ws_many/')).toEqual(keys.toSorted())
    const found = await store.get(keys.slice(0, 200))
    expect([...found].every(([key, body]) => Buffer.from(body).toString() === key)).toBe(true)
    expect(found.size).toBe(200)
  })

  test('ends with the signal', async () => {
    const gone = AbortSignal.abort(new Error('given up'))
    await expect(place.store.put('ws_1/mem_1/wmk_9', Buffer.from('x'), gone)).rejects.toThrow('given up')
    await expect(place.store.get(['ws_1/mem_1/wmk_9'], gone)).rejects.toThrow('given up')
  })

  test.runIf(driver === 'file')('directories are 0700, files 0600, nothing else lies there', async () => {
    await place.store.put('ws_modes/mem_1/wmk_1', Buffer.from('x'))
    for (const entry of readdirSync(place.dsn, { recursive: true, withFileTypes: true })) {
      const mode = statSync(join(entry.parentPath, entry.name)).mode & 0o777
      expect(mode).toBe(entry.isDirectory() ? 0o700 : 0o600)
      expect(entry.name).not.toContain('draft')
    }
  })

  test.runIf(driver === 'file')('no key leads out of the root', async () => {
    for (const part of ESCAPES) {
      for (const key of [`${part}/a/b`, `a/${part}/b`, `a/b/${part}`]) {
        await expect(place.store.put(key, Buffer.from('x'))).rejects.toThrow('is no content key')
        await expect(place.store.get([key])).rejects.toThrow('is no content key')
      }
    }
  })
})

test('an id that could be more than a name is refused as a part of a key', () => {
  for (const id of ESCAPES) {
    expect(() => keyOf({ workspaceId: 'ws', memoryId: id, watermark: 'w' })).toThrow('cannot be part')
    expect(() => prefixOf(id)).toThrow('cannot be part')
  }
})
