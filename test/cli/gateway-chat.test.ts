import type { ServerResponse } from 'node:http'
import { beforeAll, expect, test } from 'vitest'
import { describeInPlaces } from '../platform/support.ts'
import { openServer } from '../support/http-server.ts'
import { addModels, gatewayCli } from './gateway-support.ts'
import type { CliResult } from './run-cli.ts'

describeInPlaces('mem gateway chat', (place) => {
  const cli = gatewayCli(place)
  const { model, file, mem, gateway, json } = cli
  beforeAll(() => addModels(cli))

  test('gateway#110 chat: a stream, JSON, standard input, a picture, a key; tokens and cost on standard error', async () => {
    const streamed = await mem(['gateway', 'chat', 'Say hi', '--model', 'fast', '--system', 'Be brief.'])
    expect(streamed).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^\d+ \+ \d+ tokens .*openai-compatible main local-model\n$/),
    })
    expect(streamed.stdout).toMatch(/.+\n$/)
    expect(model().received.at(-1)?.body).toMatchObject({
      stream: true,
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Say hi' },
      ],
    })
    const whole = await mem(
      ['gateway', 'chat', '-', '--model', 'local-model', '--no-stream', '--json', '--credential', 'main'],
      { stdin: 'From a pipe' },
    )
    expect(whole.code).toBe(0)
    expect(model().received.at(-1)?.body).toMatchObject({
      messages: [
        { role: 'system', content: 'Answer in JSON.' },
        { role: 'user', content: 'From a pipe' },
      ],
      response_format: { type: 'json_object' },
    })
    const picture = file('dot.png', Buffer.from('89504e470d0a1a0a', 'hex'))
    const { choices } = await json('chat', 'What is it?', '--model', 'fast', '--image', picture)
    expect(choices[0].message.content).toMatch(/./)
    expect(JSON.stringify(model().received.at(-1)?.body)).toContain('data:image/png;base64,iVBORw0KGgo=')

    const token = (await gateway('keys', 'add', '--name', 'ci')).trim().split('  ')[2] ?? ''
    const keyFile = file('ci.key', `${token}\n`)
    const withKey = await mem(['gateway', 'chat', 'hi', '--model', 'fast', '--key-file', keyFile], {
      env: { MEM_SESSION_TOKEN: '' },
    })
    expect(withKey.code).toBe(0)
    const models = await mem(['gateway', 'models'], { env: { MEM_SESSION_TOKEN: '', MEM_GATEWAY_KEY: token } })
    expect(models.stdout).toContain('fast  alias\n')
  })

  test('gateway#110 chat --json: providers want the word JSON, which is added where nobody says it', async () => {
    const sent = async (prompt: string, ...more: string[]): Promise<unknown> => {
      const said = await mem(['gateway', 'chat', prompt, '--model', 'fast', '--json', ...more])
      expect(said.code).toBe(0)
      return model().received.at(-1)?.body
    }
    const user = (content: string): object => ({ role: 'user', content })
    expect(await sent('Three colours as json')).toMatchObject({ messages: [user('Three colours as json')] })
    expect(await sent('Three colours', '--system', 'You speak JSON.')).toMatchObject({
      messages: [{ role: 'system', content: 'You speak JSON.' }, user('Three colours')],
    })
    expect(await sent('Three colours', '--system', 'Be brief.')).toMatchObject({
      messages: [{ role: 'system', content: 'Be brief.\nAnswer in JSON.' }, user('Three colours')],
    })
    const { stdout } = await mem(['gateway', 'chat', '--help'])
    expect(stdout.replace(/\s+/g, ' ')).toContain('With a virtual key, only --no-stream tells the cost')
  })

  test('gateway#110 chat: exit codes', async () => {
    const chat = (...argv: string[]): Promise<CliResult> => mem(['gateway', 'chat', 'hi', ...argv])
    expect(await chat()).toMatchObject({ code: 1, stderr: expect.stringContaining('--model') })
    expect(await mem(['gateway', 'chat', '-', '--model', 'fast'], { stdin: ' \n' })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('the prompt is empty'),
    })
    expect(await chat('--model', 'nobody-knows')).toMatchObject({
      code: 8,
      stderr: expect.stringMatching(/model_not_found\)\n.*gateway models/),
    })
    expect(await chat('--model', 'fast', '--session-token', 'mst_x')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/invalid_api_key\)\n.*mem login.*--key-file/),
    })
    expect(await mem(['gateway', 'models', '--session-token', 'mst_x'])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/invalid_api_key\)\n.*mem login.*--key-file/),
    })
    expect(await chat('--model', 'fast', '--image', '/nowhere.png')).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('cannot read'),
    })
    expect(await chat('--model', 'fast', '--image', file('x.txt', 'no picture'))).toMatchObject({ code: 1 })
    model().setScript({ status: 503 })
    expect(await chat('--model', 'local-model')).toMatchObject({ code: 3 })
    model().setScript([])
    expect(
      await mem(['gateway', 'chat', 'hi', '--model', 'fast'], { env: { MEM_ENDPOINT: 'http://127.0.0.1:9' } }),
    ).toMatchObject({ code: 4, stderr: expect.stringContaining('cannot reach') })
  })

  test('gateway#110 chat: what is refused comes with what to do next', async () => {
    const refused = async (status: number, code: string, message = 'no'): Promise<string> => {
      const server = await openServer((_, response) => {
        const head = { 'content-type': 'application/json', 'retry-after': '7' }
        response.writeHead(status, head).end(JSON.stringify({ error: { message, code } }))
      })
      const chat = ['gateway', 'chat', 'hi', '--model', 'fast']
      return (await mem(chat, { env: { MEM_ENDPOINT: server } })).stderr
    }
    expect(await refused(429, 'upstream_rate_limited')).toBe('error: no (upstream_rate_limited)\n  Try again in 7 s.\n')
    expect(await refused(403, 'price_unknown')).toMatch(/gateway\.prices.*--budget-unknown-price allow/)
    expect(await refused(429, 'budget_exceeded')).toMatch(/\n.*mem gateway cost/)
    expect(await refused(502, 'upstream_credentials_rejected')).toMatch(/\n.*credentials list.*--api-key-file/)
  })

  test('gateway#110 chat: a key that no header can carry is refused, and not told', async () => {
    const chat = ['gateway', 'chat', 'hi', '--model', 'fast', '--key-file', file('two.key', 'mvk_one\nmvk_two\n')]
    const refused = { code: 1, stdout: '', stderr: expect.not.stringContaining('mvk_') }
    expect(await mem(chat)).toEqual(refused)
    expect(await mem(chat, { env: { MEM_ENDPOINT: 'http://me:mvk_x@127.0.0.1:9' } })).toEqual(refused)
  })

  test('gateway#110 chat: standard input is read once', async () => {
    const both = ['gateway', 'chat', '-', '--model', 'fast', '--key-file', '-']
    expect(await mem(both, { stdin: 'mvk_x' })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('the prompt and --key-file both want standard input'),
    })
  })

  test('gateway#109 models: a flag that would change nothing is refused', async () => {
    const fails = async (argv: string[], stderr: RegExp): Promise<void> => {
      expect(await mem(['gateway', 'models', ...argv])).toEqual({
        code: 1,
        stdout: '',
        stderr: expect.stringMatching(stderr),
      })
    }
    await fails(['--key', 'ci'], /--key is for --explain/)
    await fails(['--surface', 'chat'], /--surface is for --explain/)
    await fails(['--explain', 'fast', '--key-file', file('any.key', 'mvk_x')], /takes no --key-file\n.*--key/)
  })

  test('gateway#110 chat: an answer that breaks off, and one that --timeout does not wait for', async () => {
    const broken = await openServer((_, response) => {
      response
        .writeHead(200, { 'content-type': 'text/event-stream', 'content-length': 99 })
        .write('data: {', () => response.destroy())
    })
    const silent = await openServer(() => undefined)
    const chat = ['gateway', 'chat', 'hi', '--model', 'fast']
    for (const more of [[], ['-o', 'json']]) {
      expect(await mem([...chat, ...more], { env: { MEM_ENDPOINT: broken } })).toMatchObject({
        code: 3,
        stderr: 'error: the answer broke off\n',
      })
    }
    expect(await mem([...chat, '--timeout', '50ms'], { env: { MEM_ENDPOINT: silent } })).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/did not answer within 0\.05 s\n.*--timeout/),
    })
  })

  test('gateway#110 chat: an answer is one though its cost is not found; Ctrl-C ends the look-up too', async () => {
    const frames = 'data: {"choices":[{"delta":{"content":"yes"}}]}\n\ndata: [DONE]\n\n'
    let lookUp = (response: ServerResponse): unknown => response.writeHead(500).end()
    const server = await openServer((request, response) => {
      if (request.method === 'GET') return lookUp(response)
      return response.writeHead(200, { 'content-type': 'text/event-stream', 'x-request-id': 'req_1' }).end(frames)
    })
    const chat = (): Promise<CliResult> =>
      mem(['gateway', 'chat', 'hi', '--model', 'fast'], { env: { MEM_ENDPOINT: server } })
    expect(await chat()).toMatchObject({ code: 0, stdout: 'yes\n' })
    lookUp = () => process.emit('SIGINT')
    expect(await chat()).toMatchObject({ code: 130, stdout: 'yes\n', stderr: expect.stringContaining('stopped') })
  })

  test('gateway#110 Ctrl-C ends the call at the provider and leaves with 130', async () => {
    await gateway('credentials', 'test', 'main') // the failures before rest it no longer
    model().setScript({ silent: 1 })
    const before = model().received.length
    const running = mem(['gateway', 'chat', 'Count to a million', '--model', 'local-model'])
    await model().waitFor((call) => call.number > before)
    process.emit('SIGINT')
    expect(await running).toMatchObject({ code: 130, stderr: expect.stringContaining('stopped') })
    await model().waitForClosed((call) => call.number > before)
    model().setScript([])
  })
})
