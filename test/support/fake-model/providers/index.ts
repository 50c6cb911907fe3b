import type { ProviderName } from '../wire.ts'
import { anthropic } from './anthropic.ts'
import { azure } from './azure.ts'
import { bedrock } from './bedrock.ts'
import { cloudRoles } from './cloud-roles.ts'
import { gemini } from './gemini.ts'
import { groq } from './groq.ts'
import { mistral } from './mistral.ts'
import { compatible, ollama, openai } from './openai.ts'
import type { Clock, Provider } from './provider.ts'
import { vertex } from './vertex.ts'

export type { Provider } from './provider.ts'

const MAKERS: Readonly<Record<ProviderName, (clock: Clock) => Provider>> = {
  openai,
  anthropic,
  gemini,
  'azure-openai': azure,
  bedrock,
  vertex,
  mistral,
  groq,
  ollama,
  'openai-compatible': compatible,
  'cloud-roles': cloudRoles,
}

/** @throws Error for an unknown one, as the command line may name it */
export function createProvider(name: ProviderName, clock: Clock): Provider {
  if (Object.hasOwn(MAKERS, name)) return MAKERS[name](clock)
  throw new Error(`--provider is one of ${Object.keys(MAKERS).join(', ')}`)
}
