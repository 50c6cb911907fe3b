import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { describeInPlaces, PASSWORD } from '../platform/support.ts'
import { startFakeModel, type FakeModel } from '../support/fake-model/index.ts'
import { runCli, type CliResult } from './run-cli.ts'

interface Served {
  readonly url: string
  readonly stderr: () => string
  /** Ctrl-C; gives the exit code. */
  stop(): Promise<number>
}

describeInPlaces('gateway#108 mem gateway', (place) => {
  let fake: FakeModel | undefined
  beforeAll(async () => {
    fake = await startFakeModel({ provider: 'openai-compatible' })
  })
  afterAll(() => fake?.close())

  const env = (): Record<string, string> => ({
    HOME: place().directory,
    ...place().env,
    MEM_ADDR: '127.0.0.1:0',
    MEM_LOG_LEVEL: 'error',
  })

  /** Runs the verb until it says where it listens. */
  async function serve(isTTY = false, answer = ''): Promise<Served> {
    const config = join(place().directory, 'mem.yaml')
    writeFileSync(config, 'gateway: {allowed_hosts: ["127.0.0.1"]}\ntelemetry: {log_level: error}\n')
    let stderr = ''
    let tell: (url: string) => void = () => undefined
    const url = new Promise<string>((resolve) => (tell = resolve))
    const code = runProgram(['gateway', '--config', config], {
      stdin: (async function* () {
        yield Buffer.from(answer)
      })(),
      stdout: {
        write: (text) => {
          const [found] = /http:\/\/127\.0\.0\.1:\d+/.exec(text) ?? []
          if (found !== undefined) tell(found)
        },
      },
      stderr: { isTTY, write: (text) => void (stderr += text) },
      env: env(),
    })
    const address = await Promise.race([url, code.then((left) => `ended with ${left}: ${stderr}`)])
    return {
      url: address,
      stderr: () => stderr,
      stop: () => {
        process.emit('SIGINT')
        return code
      },
    }
  }

  test('gateway#108 an empty store: the command is told, calls are 503', async () => {
    const { url, stderr, stop } = await serve()
    // As the server was started: elsewhere, the command would make another store.
    const config = join(place().directory, 'mem.yaml')
    expect(stderr()).toContain(
      `mem platform init --organization <name> --email <you@example.org> --config '${config}'\n`,
    )
    const answer = await fetch(`${url}/rest/v1/llm-gateway/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer mvk_${'a'.repeat(43)}` },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
    })
    expect(answer.status).toBe(503)
    expect(await answer.json()).toMatchObject({ error: { code: 'not_initialized' } })
    expect((await fetch(`${url}/v1/workspaces`)).status).toBe(404)
    expect(await stop()).toBe(0)
  })

  test('gateway#108 a terminal is offered to make the organization; no is no', async () => {
    const { stderr, stop } = await serve(true, 'n\n')
    expect(stderr()).toMatch(/There is no organization yet\. Make the first one now\?[^]*mem platform init/)
    expect(await stop()).toBe(0)
  })

  test('gateway#108 five commands to an answer', async () => {
    const mem = (argv: string[], more: Record<string, string> = {}): Promise<CliResult> =>
      runCli(argv, { env: { ...env(), MEM_PASSWORD: PASSWORD, ...more } })
    const made = await mem(['platform', 'init', '--organization', 'Acme', '--email', 'ada@example.org'])
    expect(made.code).toBe(0)
    const { url, stderr, stop } = await serve()
    expect(stderr()).toBe('')
    const at = { MEM_ENDPOINT: url, PROVIDER_KEY: String(fake?.credential['api_key']) }
    expect((await mem(['login', '--email', 'ada@example.org'], at)).code).toBe(0)
    const add = ['gateway', 'credentials', 'add', '--provider', 'openai-compatible', '--name', 'main']
    const address = ['--base-url', String(fake?.credential['base_url']), '--api-key-env', 'PROVIDER_KEY']
    expect(await mem([...add, ...address], at)).toMatchObject({ code: 0, stderr: '' })
    expect(await mem(['gateway', 'models'], at)).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringMatching(/no model is known by name.*--explain <name>/),
    })
    const said = await mem(['gateway', 'chat', 'hi', '--model', 'local-model'], at)
    expect(said).toMatchObject({ code: 0, stdout: expect.stringMatching(/.+\n/) })
    expect(await stop()).toBe(0)
  })
})
