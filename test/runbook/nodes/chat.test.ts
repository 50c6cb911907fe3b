import { describe, expect, test } from 'vitest'
import { createNodeRegistry } from '../../../src/runbook/registry.ts'
import type { RunOptions } from '../../../src/runbook/run/options.ts'
import { node, output, run } from '../support.ts'
import { attributes, recorder } from './recorder.ts'

const send = (type: string, values: Record<string, unknown>, options: Partial<RunOptions> = {}) =>
  run(`node ${type} n {\n${attributes(values)}\n}`, options)

const failure = async (type: string, values: Record<string, unknown>, options: Partial<RunOptions> = {}) =>
  node(await send(type, values, options), 'n')?.error

/** The vendor's own address, answered here. */
function slackApi(answer: object) {
  const calls: { url: string; authorization: string | null; body: unknown }[] = []
  const fetch = (async (url: URL, init: { headers: Headers; body: string }) => {
    calls.push({ url: String(url), authorization: init.headers.get('authorization'), body: JSON.parse(init.body) })
    return Promise.resolve(Response.json(answer))
  }) as unknown as typeof globalThis.fetch
  const registry = createNodeRegistry({ fetch, resolve: () => Promise.resolve(['192.0.2.1']) })
  return { calls, options: { registry } }
}

describe('chat_a', () => {
  test('runbook#91 webhook', async () => {
    const { url, requests } = await recorder(() => ({ body: 'ok' }))
    const values = { webhookUrl: url, channel: '#ops', text: 'hi', username: 'bot', iconEmoji: ':x:', threadTs: '1.2' }
    const report = await send('slack', values)
    expect(requests.map(({ method, body }) => [method, JSON.parse(body)])).toEqual([
      ['POST', { channel: '#ops', text: 'hi', username: 'bot', icon_emoji: ':x:', thread_ts: '1.2' }],
    ])
    expect(output(report, 'n')).toEqual({ success: true, statusCode: 200, response: 'ok' })
    expect((await failure('chat_a', { webhookUrl: url, text: '' }))?.code).toBe('config_invalid')
  })

  test('runbook#91 Web API: token, channel and the refusal inside a 200', async () => {
    const ok = slackApi({ ok: true, ts: '1.5', channel: 'C1' })
    const report = await send('chat_a', { token: 'xoxb-1', channel: 'C1', blocks: [{ type: 'divider' }] }, ok.options)
    expect(ok.calls).toEqual([
      {
        url: 'https://slack.com/api/chat.postMessage',
        authorization: 'Bearer xoxb-1',
        body: { channel: 'C1', blocks: [{ type: 'divider' }] },
      },
    ])
    expect(output(report, 'n')).toMatchObject({ success: true, ts: '1.5', channel: 'C1' })
    const refused = slackApi({ ok: false, error: 'channel_not_found' })
    expect(await failure('chat_a', { token: 'xoxb-1', channel: 'C', text: 'x' }, refused.options)).toMatchObject({
      code: 'service_rejected',
      message: 'Slack refuses: channel_not_found',
    })
    expect((await failure('chat_a', { token: 'xoxb-1', text: 'x' }, refused.options))?.code).toBe('config_invalid')
  })
})

test('runbook#92 every answer but 2xx is an error, and the webhook is in none', async () => {
  const { url } = await recorder(({ url: path }) => ({ status: Number(path.split('/')[1]), body: `no ${path}` }))
  const codes = async (type: string, values: Record<string, unknown>) =>
    Promise.all(
      [400, 401, 403, 404, 429, 500].map(
        async (status) => (await failure(type, { ...values, webhookUrl: `${url}/${status}/secret-path` }))?.code,
      ),
    )
  const expected = ['service_rejected', 'auth_failed', 'auth_failed', 'auth_failed', 'rate_limited', 'http_status']
  expect(await codes('chat_a', { text: 'x' })).toEqual(expected)
  expect(await codes('chat_b', { content: 'x' })).toEqual(expected)
  expect(await codes('chat_c', { text: 'x' })).toEqual(expected)
  const report = await send('chat_a', { webhookUrl: `${url}/400/secret-path`, text: 'x' })
  expect(JSON.stringify(report)).not.toContain(`${url}/400/secret-path`)
})

test('runbook#93 chat_b mentions nobody unless allowed', async () => {
  const { url, requests } = await recorder(() => ({ body: { id: '77' } }))
  const report = await send('discord', {
    webhookUrl: `${url}/h?a=1`,
    content: '@everyone',
    threadId: '9',
    channel: 'x',
  })
  await send('chat_b', { webhookUrl: url, embeds: [{ title: 't' }], allowMentions: true, username: 'bot' })
  expect(requests.map(({ url: path, body }) => [path, JSON.parse(body)])).toEqual([
    ['/h?a=1&wait=true&thread_id=9', { content: '@everyone', allowed_mentions: { parse: [] } }],
    ['/?wait=true', { embeds: [{ title: 't' }], username: 'bot' }],
  ])
  expect(output(report, 'n')).toEqual({ success: true, statusCode: 200, response: { id: '77' }, messageId: '77' })
})

test('runbook#93 chat_c wraps cards; an error text inside a 200 is one', async () => {
  let answer = '1'
  const { url, requests } = await recorder(() => ({ body: answer }))
  const card = { type: 'AdaptiveCard', version: '1.4', body: [] }
  const wrapped = {
    type: 'message',
    attachments: [{ contentType: 'application/vnd.microsoft.card.adaptive', contentUrl: null, content: card }],
  }
  await send('teams', { webhookUrl: url, card })
  await send('chat_c', { webhookUrl: url, card: wrapped })
  await send('chat_c', { webhookUrl: url, format: 'message_card', title: 'T', text: 'x', themeColor: 'ff0000' })
  await send('chat_c', { webhookUrl: url, title: 'T', sections: [{ facts: [{ name: 'a', value: 1 }] }] })
  expect(requests.map(({ body }) => JSON.parse(body))).toMatchObject([
    wrapped,
    wrapped,
    { '@type': 'MessageCard', title: 'T', text: 'x', summary: 'T', themeColor: 'ff0000' },
    {
      attachments: [
        {
          content: {
            type: 'AdaptiveCard',
            body: [
              { type: 'TextBlock', text: 'T' },
              { type: 'Container', items: [{ type: 'FactSet', facts: [{ title: 'a', value: '1' }] }] },
            ],
          },
        },
      ],
    },
  ])
  answer = 'Webhook message delivery failed with error: HTTP error 429'
  expect((await failure('chat_c', { webhookUrl: url, text: 'x' }))?.code).toBe('rate_limited')
  answer = 'Bad payload: error 400'
  expect((await failure('chat_c', { webhookUrl: url, text: 'x' }))?.code).toBe('service_rejected')
})

test('runbook#94 a channel of the configuration; an unknown one', async () => {
  const { url, requests } = await recorder()
  const services = { channels: { ops: { type: 'slack', webhookUrl: `${url}/secret-hook` } } }
  const report = await send('chat_a', { channel: 'ops', text: 'x' }, { services })
  expect(requests.map(({ url: path, body }) => [path, JSON.parse(body)])).toEqual([['/secret-hook', { text: 'x' }]])
  expect(report.status).toBe('succeeded')
  expect((await failure('chat_a', { channel: 'dev', text: 'x' }, { services }))?.code).toBe('config_invalid')
  expect((await failure('chat_b', { channel: 'ops', content: 'x' }, { services }))?.code).toBe('config_invalid')
  expect((await failure('chat_c', { text: 'x' }))?.code).toBe('config_invalid')
})
