import { describe, expect, it } from 'vitest'
import { keyTag, readKeyFile } from '../../src/config/key-file.ts'
import { configError, makeWorkspace } from './workspace.ts'

describe('memory#127 key file', () => {
  it.each([0o600, 0o640])('accepts mode %o and trims white space', (mode) => {
    expect(readKeyFile(makeWorkspace().write('key', '\n  the key \r\n', mode))).toBe('the key')
  })

  it.each([
    [0o644, '0644'],
    [0o660, '0660'],
    [0o400, '0400'],
    [0o4600, '4600'],
  ])('refuses mode %o and names it', (mode, written) => {
    const path = makeWorkspace().write('key', 'k', mode)
    expect(configError(() => readKeyFile(path)).message).toBe(
      `server.api_key_file ${path} has mode ${written}; it must be 0600 or 0640: chmod 600 ${path}`,
    )
  })

  it('refuses an empty and an absent file', () => {
    const { write, directory } = makeWorkspace()
    expect(configError(() => readKeyFile(write('key', ' \n', 0o600))).message).toMatch(/key is empty$/)
    expect(configError(() => readKeyFile(`${directory}/none`)).message).toMatch(/none cannot be read: ENOENT/)
  })

  it('is the key of the configuration; both forms are refused, environment and flag included', () => {
    const { load, write } = makeWorkspace({ 'mem.yaml': 'server: {api_key_file: ~/key}' })
    write('home/key', 'from-file\n', 0o600)
    expect(load().apiKey).toBe('from-file')
    expect(configError(() => load({ MEM_API_KEY: 'k' })).key).toBe('server.api_key')
    expect(configError(() => load({}, { 'api-key': 'k' })).key).toBe('server.api_key')
  })

  it.each(['two words', 'tab\there', 'line\nbreak', 'no\u00a0break', 'ключ', 'a\u0007'])(
    'a key %j is refused wherever it stands, and not shown',
    (key) => {
      const { load } = makeWorkspace()
      const { load: fromFile, write } = makeWorkspace({ 'mem.yaml': 'server: {api_key_file: ~/key}' })
      write('home/key', key, 0o600)
      for (const [from, wrong] of [
        ['server.api_key', configError(() => load({ MEM_API_KEY: key }))],
        ['server.api_key', configError(() => load({}, { 'api-key': key }))],
        ['server.api_key_file', configError(fromFile)],
      ] as const) {
        expect(wrong.key).toBe(from)
        expect(wrong.message).toContain('white space')
        expect(wrong.message).not.toContain(key)
      }
    },
  )

  it('is shown by the first 8 hex digits of its SHA-256', () => {
    expect(keyTag('abc')).toBe('ba7816bf')
  })
})
