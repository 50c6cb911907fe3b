import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { SMTPServer } from 'smtp-server'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { runProgram } from '../support/program.ts'

const directory = mkdtempSync(join(tmpdir(), 'mem-mail-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

let key: string
let cert: string
beforeAll(async () => {
  await runProgram(['init-cert', '--host', 'localhost', '--output', 'tls'], { directory })
  ;[key, cert] = [
    readFileSync(join(directory, 'tls/server.key'), 'utf8'),
    readFileSync(join(directory, 'tls/server.crt'), 'utf8'),
  ]
  writeFileSync(
    join(directory, 'mail.hcl'),
    `workflow "mail" {
  input "port" {
    type = number
  }
  input "tls" {
    type = string
    enum = ["starttls", "implicit"]
  }
  node switch how {
    expression = input.tls
    cases      = ["starttls", "implicit"]
  }
  node email starttls {
    host     = "localhost"
    port     = input.port
    username = "user"
    password = secret.password
    to       = "ada@example.com"
    from     = "me@example.com"
    subject  = "Hello"
    body     = "over STARTTLS"
  }
  node email implicit {
    host     = "localhost"
    port     = input.port
    tls      = "implicit"
    username = "user"
    password = secret.password
    to       = "ada@example.com"
    from     = "me@example.com"
    subject  = "Hello"
    body     = "over TLS"
  }
  edge how starttls { condition = "starttls" }
  edge how implicit { condition = "implicit" }
}
`,
  )
})

/** What arrives, each with whether its connection was encrypted and who logged in. */
async function mailServer(secure: boolean, disabledCommands: string[] = []) {
  const received: { secure: boolean; user: unknown; content: string }[] = []
  const commands: string[] = []
  const server = new SMTPServer({
    secure,
    key,
    cert,
    disabledCommands,
    allowInsecureAuth: true,
    authOptional: true,
    onAuth: ({ username, password }, _session, callback) => {
      commands.push('AUTH')
      callback(password === 'pass-word' ? null : new Error('wrong'), { user: username })
    },
    onData: (stream, session, callback) => {
      const read = async (): Promise<void> => {
        received.push({ secure: session.secure, user: session.user, content: await text(stream) })
        callback()
      }
      void read()
    },
  })
  server.on('error', () => undefined)
  server.listen(0, 'localhost')
  await once(server.server, 'listening')
  onTestFinished(() => server.close())
  return { port: (server.server.address() as AddressInfo).port, received, commands }
}

const send = (port: number, tls: string, env: Record<string, string> = {}) =>
  runProgram(
    [
      'run',
      'mail.hcl',
      '--input',
      `port=${port}`,
      '--input',
      `tls=${tls}`,
      '--secret',
      'password=env:PASSWORD',
      '-o',
      'json',
    ],
    { directory, env: { PASSWORD: 'pass-word', ...env } },
  )
const trusting = (): Record<string, string> => ({ NODE_EXTRA_CA_CERTS: join(directory, 'tls/server.crt') })

test.each([
  ['starttls', false],
  ['implicit', true],
])(
  'runbook#95 mail over %s arrives encrypted, with its login, when the certificate is trusted',
  async (tls, secure) => {
    const { port, received } = await mailServer(secure)
    const { code, stdout } = await send(port, tls, trusting())
    expect(JSON.parse(stdout).error).toBeUndefined()
    expect(code).toBe(0)
    expect(received).toMatchObject([{ secure: true, user: 'user', content: expect.stringContaining('Subject: Hello') }])
  },
)

test.each([
  ['starttls', false],
  ['implicit', true],
])('runbook#95 %s with a certificate that nobody trusts: tls_failed, no login, nothing sent', async (tls, secure) => {
  const { port, received, commands } = await mailServer(secure)
  const { code, stdout } = await send(port, tls)
  expect([code, JSON.parse(stdout).error.code]).toEqual([4, 'tls_failed'])
  expect([received, commands]).toEqual([[], []])
})

test('runbook#95 a server that offers no STARTTLS gets neither login nor mail in clear text', async () => {
  const { port, received, commands } = await mailServer(false, ['STARTTLS'])
  const { stdout } = await send(port, 'starttls', trusting())
  expect(JSON.parse(stdout).error).toMatchObject({ code: 'tls_failed', node: 'starttls' })
  expect([received, commands]).toEqual([[], []])
})
