import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { ChatOpenAI } from '@langchain/openai'
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach } from 'vitest'
import { startFakeModel, type FakeModel, type ProviderName, type ReceivedCall } from '../../support/fake-model/index.ts'
import {
  describeInPlaces,
  expectOk,
  initialize,
  startPlatform,
  type Place,
  type PlatformApi,
  type Reply,
} from '../../platform/support.ts'

const schema = {
  type: 'object' as const,
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}

/** A tool for all clients. */
export const WEATHER = {
  schema,
  call: (city: string): { name: string; arguments: unknown } => ({ name: 'weather', arguments: { city } }),
}

/** As the OpenAI family declares it. */
export const weatherTool = {
  type: 'function' as const,
  function: { name: 'weather', description: 'The weather of a city', parameters: schema },
}

/** The model that each kind is asked for, under the name `via-<kind>`. */
const MODELS = {
  openai: 'gpt-4o',
  anthropic: 'claude-opus-4-6',
  gemini: 'gemini-2.5-flash',
  'azure-openai': 'gpt-4o',
  bedrock: 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0',
  mistral: 'mistral-large-latest',
  groq: 'llama-3.3-70b-versatile',
  ollama: 'llama3.2:latest',
  'openai-compatible': 'local-model',
} as const satisfies Partial<Record<ProviderName, string>>
export type ClientKind = keyof typeof MODELS

/** A model for embeddings, where the kind has them, under the name `embed-<kind>`. */
const EMBEDDERS: Partial<Record<ClientKind, string>> = {
  openai: 'text-embedding-3-small',
  gemini: 'gemini-embedding-001',
  'azure-openai': 'text-embedding-3-small',
  bedrock: 'amazon.titan-embed-text-v2:0',
  mistral: 'mistral-embed',
  ollama: 'nomic-embed-text',
  'openai-compatible': 'local-embed',
}

/** Names of clients, and what they are upstream. */
const served = (kind: ClientKind): Record<string, string> => {
  const embedder = EMBEDDERS[kind]
  return { [`via-${kind}`]: MODELS[kind], ...(embedder !== undefined && { [`embed-${kind}`]: embedder }) }
}

export const KINDS = Object.keys(MODELS) as readonly ClientKind[]
export const EMBEDDING_KINDS = Object.keys(EMBEDDERS) as readonly ClientKind[]
/** All that clients may ask for. */
export const SERVED_NAMES = KINDS.flatMap((kind) => Object.keys(served(kind))).sort()
export const upstreamName = (kind: ClientKind): string => MODELS[kind]

/** A gateway over fakes of all kinds, each behind a credential named after its kind. */
export interface Gateway {
  readonly api: PlatformApi
  /** For clients of the Anthropic family; of the OpenAI family with `/v1`. */
  readonly base: string
  /** A virtual key of the organization. */
  readonly key: string
  fake(kind: ClientKind): FakeModel
  /** The calls that a fake has got since the test began. */
  received(kind: ClientKind): readonly ReceivedCall[]
  /** Calls a path below `/rest/v1/llm-gateway` as the admin. */
  manage(method: string, path: string, body?: unknown): Promise<Reply>
  /** A new key. */
  createKey(fields?: Record<string, unknown>): Promise<string>
}

const G = '/rest/v1/llm-gateway'
const FILE = 'gateway: {allowed_hosts: ["127.0.0.1"], seed: 1}\n'

async function startGateway(place: Place, fakes: ReadonlyMap<ClientKind, FakeModel>): Promise<Gateway> {
  const file = join(place.directory, 'gateway.yaml')
  writeFileSync(file, FILE)
  await initialize(place)
  const api = await startPlatform(place, { MEM_CONFIG: file })
  const manage: Gateway['manage'] = (method, path, body) => api.call(method, `/${G}/${path}`, body)
  for (const [kind, fake] of fakes) {
    const names = { model_mapping: served(kind), allowed_models: Object.keys(served(kind)) }
    expectOk(await manage('POST', 'credentials', { name: kind, ...names, ...fake.credential }), 201)
  }
  const createKey: Gateway['createKey'] = async (fields = {}) =>
    expectOk(await manage('POST', 'keys', { name: 'clients', ...fields }), 201).token
  const fake = (kind: ClientKind): FakeModel => {
    const found = fakes.get(kind)
    if (!found) throw new Error(`no fake ${kind}`)
    return found
  }
  return {
    api,
    base: `${api.url}${G}`,
    key: await createKey(),
    fake,
    received: (kind) => fake(kind).received.slice(marks.get(fake(kind)) ?? 0),
    manage,
    createKey,
  }
}

/** The fakes live in the time of the gateway: signatures and tokens have one. */
let ahead = 0
export const clock = { now: (): number => Date.now() + ahead }
const REST_MS = 20 * 60_000

/** How many calls a fake had got before the test. */
const marks = new WeakMap<FakeModel, number>()

/** Runs the tests over a gateway in SQLite and one in PostgreSQL. */
export function describeGateway(name: string, define: (gateway: () => Gateway) => void): void {
  describeInPlaces(name, (place) => {
    const fakes = new Map<ClientKind, FakeModel>()
    let gateway: Gateway | undefined
    beforeAll(async () => {
      ahead = 0
      for (const kind of KINDS) fakes.set(kind, await startFakeModel({ provider: kind, clock }))
      gateway = await startGateway(place(), fakes)
    })
    beforeEach(() => {
      for (const fake of fakes.values()) {
        fake.setScript([])
        marks.set(fake, fake.received.length)
      }
      // What an earlier test made rest, rests no longer.
      gateway?.api.advance(REST_MS)
      ahead += REST_MS
    })
    afterAll(async () => {
      await gateway?.api.stop()
      await Promise.all([...fakes.values()].map((fake) => fake.close()))
    })
    define(() => {
      if (!gateway) throw new Error('the gateway is not up yet')
      return gateway
    })
  })
}

export const openAi = ({ base, key }: Gateway, options: ConstructorParameters<typeof OpenAI>[0] = {}): OpenAI =>
  new OpenAI({ baseURL: `${base}/v1`, apiKey: key, maxRetries: 0, logLevel: 'off', ...options })

export const anthropic = (
  { base, key }: Gateway,
  options: ConstructorParameters<typeof Anthropic>[0] = {},
): Anthropic => new Anthropic({ baseURL: base, apiKey: key, maxRetries: 0, logLevel: 'off', ...options })

/** As clients sent it before 2026-10-21: `x-api-key`, no bearer. */
export const olderAnthropic = (gateway: Gateway): Anthropic =>
  anthropic(gateway, {
    apiKey: null,
    authToken: null,
    defaultHeaders: { authorization: null, 'x-api-key': gateway.key, 'anthropic-version': '2023-06-01' },
  })

export const aiModel = (
  { base, key }: Gateway,
  model: string,
): ReturnType<ReturnType<typeof createOpenAICompatible>['chatModel']> =>
  createOpenAICompatible({
    name: 'mem',
    baseURL: `${base}/v1`,
    apiKey: key,
    includeUsage: true,
    supportsStructuredOutputs: true,
  }).chatModel(model)

export const langchain = ({ base, key }: Gateway, model: string): ChatOpenAI =>
  new ChatOpenAI({ model, apiKey: key, maxRetries: 0, configuration: { baseURL: `${base}/v1`, logLevel: 'off' } })

/** The usage record of a request; waits until it is written. */
export async function usageOf(gateway: Gateway, requestId: string): Promise<Record<string, unknown>> {
  for (let tries = 0; tries < 400; tries++) {
    const [record] = expectOk(await gateway.manage('GET', `usage?request_id=${requestId}`)).usage
    if (record !== undefined) return record
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  throw new Error(`no usage record of ${requestId} came`)
}
