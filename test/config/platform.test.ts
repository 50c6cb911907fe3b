import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { printableConfig } from '../../src/config/print.ts'
import { configError, makeWorkspace } from './workspace.ts'

describe('section platform', () => {
  test('defaults: the key file lies in the data directory', () => {
    const workspace = makeWorkspace({ 'mem.yaml': 'storage: { data_dir: ./there }' })
    const { platform } = workspace.load()
    expect(platform).toEqual({
      key_file: expect.stringMatching(/there\/platform\.key$/),
      session_ttl: 720 * 3_600_000,
      auto_migrate: true,
      allow_insecure_loopback: false,
    })
    expect(printableConfig(workspace.load())['platform']).toMatchObject({ session_ttl: '720h', auto_migrate: true })
  })

  test('file and environment', () => {
    const file = 'platform: { base_url: "https://a.example/mem", key_file: ~/k, session_ttl: 1h, auto_migrate: false }'
    const { load } = makeWorkspace({ 'mem.yaml': file })
    const { platform } = load({ HOME: '/home/ada' })
    expect(platform).toMatchObject({ base_url: 'https://a.example/mem', session_ttl: 3_600_000, auto_migrate: false })
    expect(platform.key_file).toBe(join('/home/ada', 'k'))
    expect(load({ BASE_URL: 'https://b.example' }).platform.base_url).toBe('https://b.example')
  })

  test('a session ends at a time that can be written', () => {
    const load = (session_ttl: string) =>
      makeWorkspace({ 'mem.yaml': `platform: { session_ttl: ${session_ttl} }` }).load()
    expect(load('876000h').platform.session_ttl).toBe(876_000 * 3_600_000)
    expect(configError(() => load('876001h'))).toMatchObject({
      key: 'platform.session_ttl',
      message: expect.stringContaining('must be a duration of 876000h at most'),
    })
  })

  test('the public address is https, or http on this machine where that is allowed', () => {
    const { load } = makeWorkspace()
    const insecure = { MEM_ALLOW_INSECURE_LOOPBACK: 'true' }
    for (const BASE_URL of ['http://127.0.0.1:7777', 'http://localhost', 'http://[::1]:1']) {
      expect(load({ BASE_URL, ...insecure }).platform.base_url).toBe(BASE_URL)
      expect(configError(() => load({ BASE_URL }))).toMatchObject({ key: 'platform.base_url' })
    }
    for (const BASE_URL of ['http://example.org', 'https://u:p@example.org', 'https://example.org?a', 'x', 'ftp://a']) {
      const error = configError(() => load({ BASE_URL, ...insecure }))
      expect(error).toMatchObject({ key: 'platform.base_url', message: expect.stringContaining('BASE_URL') })
      expect(error.message).not.toContain('u:p@')
    }
  })
})
