import { resolve } from 'node:path'
import { invalidInput } from '../errors.ts'
import { hash, noop } from './built-in.ts'
import { gemini } from './gemini.ts'
import { directoryOf, local } from './local.ts'
import { openai } from './openai.ts'
import type { Embedder, EmbedderSettings } from './types.ts'
import { voyage } from './voyage.ts'

/** The model a provider alone (`openai:`) stands for; `local:` has none. */
const DEFAULTS = {
  hash: 'default',
  noop: 'default',
  openai: 'text-embedding-3-small',
  voyage: 'voyage-3',
  gemini: 'text-embedding-004',
  local: '',
} as const
type Provider = keyof typeof DEFAULTS

const isProvider = (name: string): name is Provider => Object.hasOwn(DEFAULTS, name)

/** Whether it is `provider:model` of a known provider. Contract: memory.md 1.2, 6.1. */
export const isKnownModel = (model: string): boolean => parse(model) !== undefined

/**
 * The embedder of `provider:model`; nothing is asked or loaded before it is used.
 * @throws MemoryError invalid_input for an unknown model and for a `local:` path outside its root.
 */
export function createEmbedder(model: string, settings: EmbedderSettings): Embedder {
  const parsed = parse(model)
  if (!parsed) {
    const providers = Object.keys(DEFAULTS)
      .map((name) => `${name}:`)
      .join(' ')
    throw invalidInput(`embedding_model ${model} is not provider:model of ${providers}`, 'embedding_model')
  }
  const { provider, name } = parsed
  const server = parse(settings.model)
  const isServerModel = server?.provider === provider && server.name === name
  const { apiKey: _apiKey, baseUrl: _baseUrl, ...shared } = settings
  const own = isServerModel ? settings : shared
  switch (provider) {
    case 'openai':
      return openai(name, own)
    case 'voyage':
      return voyage(name, own)
    case 'gemini':
      return gemini(name, own)
    case 'local':
      return local(
        name,
        isServerModel ? resolve(settings.localDir ?? '', name) : directoryOf(name, settings.localDir),
        own,
      )
    case 'noop':
      return noop(own)
    case 'hash':
      return hash(own)
  }
}

function parse(model: string): { provider: Provider; name: string } | undefined {
  const [, provider = '', named = ''] = /^([a-z]+):([^]*)$/.exec(model) ?? []
  if (!isProvider(provider)) return undefined
  const name = named || DEFAULTS[provider]
  const isOneOnly = DEFAULTS[provider] === 'default'
  return name === '' || (isOneOnly && name !== 'default') ? undefined : { provider, name }
}
