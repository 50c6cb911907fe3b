import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { SMTPServer } from 'smtp-server'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createNodeRegistry } from '../../../src/runbook/registry.ts'
import type { RunOptions } from '../../../src/runbook/run/options.ts'
import { node, output, run } from '../support.ts'
import { attributes } from './recorder.ts'

const MAIL = { to: 'a@example.com', from: 'me@example.com', subject: 'Hello', body: 'Text' }

const send = (values: Record<string, unknown>, options: Partial<RunOptions> = {}) =>
  run(`node email n {\n${attributes({ ...MAIL, ...values })}\n}`, options)

const failure = async (values: Record<string, unknown>, options: Partial<RunOptions> = {}) =>
  node(await send(values, options), 'n')?.error

/** Knows `user` with `pass`, and no recipient at refused.test. */
async function mailServer(options: ConstructorParameters<typeof SMTPServer>[0] = {}) {
  const received: { recipients: string[]; user: unknown; content: string }[] = []
  const commands = { logins: 0 }
  const server = new SMTPServer({
    authOptional: true,
    allowInsecureAuth: true,
    onAuth: ({ username, password }, _session, callback) => {
      commands.logins++
      if (username === 'user' && password === 'pass-word') callback(null, { user: username })
      else callback(new Error('unknown user'))
    },
    onRcptTo: ({ address }, _session, callback) =>
      callback(address.endsWith('@refused.test') ? new Error('no such mailbox') : null),
    onData: (stream, { envelope, user }, callback) => {
      const read = async (): Promise<void> => {
        const content = await text(stream)
        received.push({ recipients: envelope.rcptTo.map(({ address }) => address), user, content })
        callback()
      }
      void read()
    },
    ...options,
  })
  server.on('error', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  onTestFinished(() => server.close())
  return { host: '127.0.0.1', port: (server.server.address() as AddressInfo).port, received, commands }
}

describe('smtp', () => {
  test('runbook#95 a message with names, copies, headers and a login on this machine', async () => {
    const { host, port, received } = await mailServer({ disabledCommands: ['STARTTLS'] })
    const report = await send({
      host,
      port,
      tls: 'none',
      username: 'user',
      password: 'pass-word',
      to: 'A <a@example.com>, "Doe, J" <b@example.com>',
      cc: ['c@example.com'],
      bcc: 'd@example.com',
      fromName: 'Mem',
      replyTo: 'reply@example.com',
      subject: 'Grüße',
      body: '<b>hi</b>',
      html: true,
      headers: { 'X-Kind': 'test' },
    })
    expect(output(report, 'n')).toMatchObject({
      success: true,
      to: ['a@example.com', 'b@example.com'],
      subject: 'Grüße',
      accepted: ['a@example.com', 'b@example.com', 'c@example.com', 'd@example.com'],
      rejected: [],
    })
    const [message] = received
    expect([message?.user, message?.recipients]).toEqual([
      'user',
      ['a@example.com', 'b@example.com', 'c@example.com', 'd@example.com'],
    ])
    expect(message?.content).toContain('From: Mem <me@example.com>')
    expect(message?.content).toContain('Reply-To: reply@example.com')
    expect(message?.content).toContain('Content-Type: text/html')
    expect(message?.content).toMatch(/^X-Kind: test\r$/m)
    expect(message?.content).not.toMatch(/\bd@example\.com|^Bcc:/im)
    expect(JSON.stringify(report)).not.toContain('pass-word')
  })

  test('runbook#95 without STARTTLS, or with an unknown certificate: tls_failed, nothing sent', async () => {
    const plain = await mailServer({ disabledCommands: ['STARTTLS'] })
    const login = { username: 'user', password: 'pass-word' }
    expect((await failure({ host: plain.host, port: plain.port, ...login }))?.code).toBe('tls_failed')
    const selfSigned = await mailServer()
    expect((await failure({ host: selfSigned.host, port: selfSigned.port, ...login }))?.code).toBe('tls_failed')
    const implicit = await mailServer({ secure: true })
    const values = { host: implicit.host, port: implicit.port, tls: 'implicit' }
    expect((await failure(values))?.code).toBe('tls_failed')
    expect((await failure({ ...values, host: plain.host, port: plain.port }))?.code).toBe('tls_failed')
    for (const { received, commands } of [plain, selfSigned, implicit]) {
      expect([received, commands.logins]).toEqual([[], 0])
    }
  })

  test('runbook#95 refused recipient, refused login, no login in clear text elsewhere', async () => {
    const { host, port } = await mailServer({ disabledCommands: ['STARTTLS'] })
    const here = { host, port, tls: 'none' }
    expect(await failure({ ...here, to: ['a@example.com', 'b@refused.test'] })).toMatchObject({
      code: 'smtp_rejected',
      details: { accepted: ['a@example.com'], rejected: ['b@refused.test'] },
    })
    expect((await failure({ ...here, to: 'b@refused.test' }))?.code).toBe('smtp_rejected')
    expect((await failure({ ...here, username: 'user', password: 'wrong-one' }))?.code).toBe('auth_failed')
    const elsewhere = { host: 'mail.test', tls: 'none', username: 'user', password: 'x' }
    expect((await failure(elsewhere))?.code).toBe('config_invalid')
    const registry = createNodeRegistry({ resolve: () => Promise.resolve(['169.254.1.1']) })
    expect((await failure({ host: 'mail.test' }, { registry }))?.code).toBe('address_refused')
    expect((await failure({ ...here, to: 'nobody' }))?.code).toBe('config_invalid')
  })

  test('runbook#107 line breaks in subject, addresses, headers: nothing sent', async () => {
    const { host, port, received } = await mailServer({ disabledCommands: ['STARTTLS'] })
    for (const values of [
      { subject: 'a\r\nBcc: x@example.com' },
      { to: 'a@example.com\nb@example.com' },
      { fromName: 'a\nb' },
      { headers: { 'X-A': 'a\r\nb' } },
    ]) {
      expect((await failure({ host, port, tls: 'none', ...values }))?.code).toBe('header_invalid')
    }
    expect(received).toEqual([])
  })
})

test('runbook#95 sendgrid: request, 401, 429', async () => {
  const calls: unknown[] = []
  let status = 202
  const fetch = ((url: URL, { headers, body }: { headers: Headers; body: string }) => {
    calls.push([String(url), headers.get('authorization'), JSON.parse(body)])
    return Promise.resolve(new Response(null, { status, headers: { 'x-message-id': 'm1' } }))
  }) as unknown as typeof globalThis.fetch
  const registry = createNodeRegistry({ fetch, resolve: () => Promise.resolve(['192.0.2.1']) })
  const values = { provider: 'sendgrid', apiKey: 'SG.key', to: ['A <a@example.com>'], cc: 'c@example.com' }
  expect(output(await send(values, { registry }), 'n')).toEqual({
    success: true,
    to: ['a@example.com'],
    subject: 'Hello',
    messageId: 'm1',
    accepted: ['a@example.com', 'c@example.com'],
    rejected: [],
  })
  expect(calls).toEqual([
    [
      'https://api.sendgrid.com/v3/mail/send',
      'Bearer SG.key',
      {
        personalizations: [{ to: [{ email: 'a@example.com', name: 'A' }], cc: [{ email: 'c@example.com' }] }],
        from: { email: 'me@example.com' },
        subject: 'Hello',
        content: [{ type: 'text/plain', value: 'Text' }],
      },
    ],
  ])
  status = 401
  expect((await failure(values, { registry }))?.code).toBe('auth_failed')
  status = 429
  expect((await failure(values, { registry }))?.code).toBe('rate_limited')
})
