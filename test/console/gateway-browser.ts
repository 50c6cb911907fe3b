import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createPlace, expectOk, initialize, PASSWORD, startPlatform } from '../platform/support.ts'
import { startFakeModel, type FakeModel } from '../support/fake-model/index.ts'
import { describeAtSite, type Visit } from './browser.ts'

export const MEMBER = 'bob@example.org'
export const CLAUDE = 'claude-opus-4-6'

/** A gateway with two providers, their credentials, an alias over both, and a member beside the admin. */
export interface Gateway {
  readonly url: string
  /** Serves `local-*`, of unknown price. */
  readonly local: FakeModel
  /** Serves CLAUDE. */
  readonly claude: FakeModel
  /** Calls a path below the gateway as the admin. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at what came, whatever it is
  manage(method: string, path: string, body?: unknown): Promise<any>
  /** Asks a model as the holder of a token, the admin's when absent; the status of the answer. */
  chat(model: string, token?: string): Promise<number>
  /** The id of a credential. */
  credential(name: string): Promise<number>
  stop(): Promise<void>
}

async function startGateway(): Promise<Gateway> {
  const place = await createPlace('sqlite')
  const file = join(place.directory, 'mem.yaml')
  writeFileSync(file, 'gateway: {allowed_hosts: ["127.0.0.1"], seed: 1}\n')
  await initialize(place)
  const api = await startPlatform(place, { MEM_CONFIG: file })
  const local = await startFakeModel({ provider: 'openai-compatible' })
  const claude = await startFakeModel({ provider: 'anthropic' })
  const call = (method: string, path: string, body?: unknown, token?: string) =>
    api.call(method, `//rest/v1/llm-gateway/${path}`, body, token === undefined ? {} : { token })
  const manage: Gateway['manage'] = async (method, path, body) => {
    const reply = await call(method, path, body)
    return expectOk(reply, reply.status < 300 ? reply.status : 200)
  }
  const both = { ...local.credential, name: 'Local', allowed_models: ['local-*'] }
  const { id: localId } = await manage('POST', 'credentials', both)
  const { id: claudeId } = await manage('POST', 'credentials', {
    ...claude.credential,
    name: 'Claude',
    default_model: CLAUDE,
  })
  const members = [
    { credential_id: localId, model: 'local-model', weight: 3 },
    { credential_id: claudeId, weight: 1 },
  ]
  await manage('POST', 'model-groups', { name: 'helper', members, fallback_models: [CLAUDE] })
  await api.user(MEMBER)
  return {
    url: api.url,
    local,
    claude,
    manage,
    chat: async (model, token) =>
      (await call('POST', 'v1/chat/completions', { model, messages: [{ role: 'user', content: 'Hello' }] }, token))
        .status,
    credential: async (name) =>
      (await manage('GET', 'credentials')).credentials.find((each: { name: string }) => each.name === name).id,
    stop: async () => {
      await api.stop()
      await Promise.all([local.close(), claude.close()])
      await place.remove()
    },
  }
}

/** Signs in on the page that is open. */
export async function signIn({ page }: Visit<Gateway>, email = 'ada@example.org'): Promise<void> {
  const dialog = page.getByRole('dialog', { name: 'Sign in' })
  await dialog.getByLabel('E-mail').fill(email)
  await dialog.getByLabel('Password').fill(PASSWORD)
  await page.keyboard.press('Enter')
  await page.locator('#who').getByText(email).waitFor({ state: 'attached' })
}

/** Runs the tests in Chromium as the admin of a gateway, on its page of credentials. */
export function describeGatewayInBrowser(name: string, define: (at: () => Visit<Gateway>) => void): void {
  const enter = async (visit: Visit<Gateway>): Promise<void> => {
    await visit.open('/gateway/')
    await signIn(visit)
    await visit.page.getByRole('table', { name: 'Credentials' }).waitFor()
  }
  describeAtSite(name, startGateway, enter, define)
}
