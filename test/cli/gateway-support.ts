import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { SECTIONS } from '../../src/cli/table.ts'
import { initialize, startPlatform, type Place, type PlatformApi } from '../platform/support.ts'
import { startFakeModel, type FakeModel } from '../support/fake-model/index.ts'
import { runCli, type CliResult } from './run-cli.ts'

/** The verbs of the gateway, longer ones first. */
export const VERBS = Object.keys(SECTIONS['Model gateway:'] ?? {}).sort((a, b) => b.length - a.length)
const ran = new Set<string>()

/** Of the verbs that a test file is about, those that it never ran. */
export const leftOut = (about: RegExp): string[] => VERBS.filter((verb) => about.test(verb) && !ran.has(verb))

interface Given {
  env?: Record<string, string>
  stdin?: string
  isTTY?: boolean
}

/** The command line of an admin, beside a gateway and a provider. */
export interface GatewayCli {
  model(): FakeModel
  url(): string
  /** Writes a file into the place; gives its path. */
  file(name: string, text: string | Uint8Array): string
  mem(argv: string[], given?: Given): Promise<CliResult>
  /** Runs a verb that has to succeed; gives what it printed. */
  gateway(...argv: string[]): Promise<string>
  /** As `gateway`, parsed. */
  json(...argv: string[]): Promise<any> // oxlint-disable-line typescript/no-explicit-any -- tests look at what came
}

/** Serves the gateway of a place while its tests run. */
export function gatewayCli(place: () => Place): GatewayCli {
  let api: PlatformApi | undefined
  let fake: FakeModel | undefined
  const file = (name: string, text: string | Uint8Array): string => {
    const path = join(place().directory, name)
    writeFileSync(path, text)
    return path
  }
  const mem = (argv: string[], { env = {}, stdin = '', isTTY = false }: Given = {}): Promise<CliResult> => {
    const verb = VERBS.find((name) => argv.join(' ').startsWith(name))
    if (verb !== undefined) ran.add(verb)
    const own = { HOME: place().directory, MEM_ENDPOINT: api?.url ?? '', MEM_SESSION_TOKEN: api?.admin ?? '' }
    return runCli(argv, { env: { ...own, ...env }, stdin, isTTY })
  }
  const gateway = async (...argv: string[]): Promise<string> => {
    const { code, stdout, stderr } = await mem(['gateway', ...argv])
    expect({ code, stderr, argv }).toMatchObject({ code: 0 })
    return stdout
  }

  beforeAll(async () => {
    fake = await startFakeModel({ provider: 'openai-compatible' })
    const config = file('mem.yaml', 'gateway: {allowed_hosts: ["127.0.0.1"], seed: 1}\n')
    await initialize(place())
    api = await startPlatform(place(), { MEM_CONFIG: config })
  })
  afterAll(async () => {
    await api?.stop()
    await fake?.close()
  })

  return {
    model: () => {
      if (!fake) throw new Error('the provider is not up yet')
      return fake
    },
    url: () => api?.url ?? '',
    file,
    mem,
    gateway,
    json: async (...argv) => JSON.parse(await gateway(...argv, '-o', 'json')),
  }
}

/** Saves the provider as the credential `main`, and names a model of it `fast`. */
export async function addModels({ gateway, file, model }: GatewayCli): Promise<void> {
  const { base_url: baseUrl, api_key: apiKey } = model().credential
  const key = file('main.key', `${String(apiKey)}\n`)
  const address = ['--provider', 'openai-compatible', '--base-url', String(baseUrl), '--api-key-file', key]
  await gateway('credentials', 'add', '--name', 'main', ...address, '--allow', 'local-model')
  await gateway('groups', 'add', '--name', 'fast', '--member', 'main,model=local-model,weight=3')
}
