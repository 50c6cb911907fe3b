import fc from 'fast-check'
import { expect, it } from 'vitest'
import { printableConfig } from '../../src/config/print.ts'
import { formatDuration, parseDuration } from '../../src/base/duration.ts'
import { configError, makeWorkspace } from './workspace.ts'

it('memory#130 hides secrets and passwords, writes durations as people do', () => {
  const { load } = makeWorkspace({
    'mem.yaml': `
server: {timeout: 300}
storage: {metadata_driver: postgres, metadata_dsn: "postgres://u:hidden@db/mem", ledger_dsn: /l.db}
embedding: {model: "openai:x", base_url: "https://u:hidden@host/v1", inline_timeout: 0}`,
  })
  const shown = printableConfig(load({ MEM_API_KEY: 'hidden', OPENAI_API_KEY: 'hidden', GEMINI_API_KEY: 'hidden' }))
  expect(JSON.stringify(shown)).not.toContain('hidden')
  expect(shown).toMatchObject({
    server: { api_key: '***', timeout: '5m', tls: { enabled: false } },
    storage: { metadata_dsn: 'postgres://u:***@db/mem', ledger_dsn: '/l.db' },
    embedding: {
      api_key: '***',
      base_url: 'https://u:***@host/v1',
      timeout: '30s',
      inline_timeout: '0s',
      providers: { openai: { api_key: '***' }, voyage: {}, gemini: { api_key: '***' } },
    },
  })
  expect(shown).not.toHaveProperty('apiKey')
})

it('memory#130 shows the channels of runbooks by name, and hides where they lead', () => {
  const { load } = makeWorkspace({
    'mem.yaml': 'runbook: {channels: {ops: {type: slack, webhook_url: "https://hooks.example/hidden"}}}',
  })
  expect(printableConfig(load())).toMatchObject({
    runbook: { channels: { ops: { type: 'slack', webhook_url: '***' } } },
  })
})

it('memory#130 says what is wrong with a secret without it', () => {
  const { load } = makeWorkspace({ 'mem.yaml': 'runbook: {channels: {ops: {type: slack, webhook_url: 1234567}}}' })
  const { message } = configError(() => load())
  expect(message).toContain('runbook.channels.ops.webhook_url must be a text')
  expect(message).not.toContain('1234567')
})

it('a duration reads back as it was written', () => {
  expect(['30s', '5m', '2h', 45, '1.5', '20ms'].map(parseDuration)).toEqual([
    30_000, 300_000, 7_200_000, 45_000, 1500, 20,
  ])
  expect(['', 's', '-1', '1d', '1e3', '9999h'].map(parseDuration)).toEqual(Array(6).fill(undefined))
  fc.assert(fc.property(fc.nat(2 ** 31 - 1), (ms) => parseDuration(formatDuration(ms)) === ms))
})
