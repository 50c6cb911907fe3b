import type { Config } from '../../config/load.ts'
import type { NodeServices } from '../../runbook/registry.ts'
import type { Io } from '../command.ts'
import type { Settings } from '../settings.ts'

const KEYS = {
  openai: 'OPENAI_API_KEY',
  anthropic: 'ANTHROPIC_API_KEY',
  gemini: 'GEMINI_API_KEY',
  voyage: 'VOYAGE_API_KEY',
} as const

/** What the surroundings give to nodes: keys of providers, webhooks of channels, the memory service. */
export function nodeServices(
  { env }: Pick<Io, 'env'>,
  { endpoint, apiKey, agentId, workspace }: Pick<Settings, 'endpoint' | 'apiKey' | 'agentId' | 'workspace'>,
  { channels }: Pick<Config['runbook'], 'channels'>,
): NodeServices {
  const keys = Object.entries(KEYS).flatMap(([provider, name]) => (env[name] ? [[provider, env[name]] as const] : []))
  const webhooks = Object.entries(channels).map(([name, { type, webhook_url, webhook_url_env = '' }]) => {
    const webhookUrl = webhook_url ?? env[webhook_url_env]
    return [name, { type, ...(webhookUrl && { webhookUrl }) }] as const
  })
  return {
    embedByHash: async (text) => (await import('../../memory/embedder/hash.ts')).embedDocument(text),
    apiKeys: Object.fromEntries(keys),
    channels: Object.fromEntries(webhooks),
    memory: {
      endpoint,
      agentId,
      ...(apiKey !== undefined && { apiKey }),
      ...(workspace !== undefined && { workspace }),
    },
  }
}
