import { candidateOf } from './support.ts'

const CLAUDE = { reasoning: 'adaptive' }
export const anthropic = candidateOf('anthropic', {
  row: CLAUDE,
  config: { anthropic_version: '2023-06-01', default_max_tokens: 4096 },
})
export const gemini = candidateOf('gemini', { row: { reasoning: 'level' } })
export const bedrock = candidateOf('bedrock', { model: 'anthropic.claude-x', row: CLAUDE })
export const vertex = candidateOf('vertex', {
  dialect: 'anthropic',
  row: CLAUDE,
  config: { anthropic_version: 'vertex-2023-10-16' },
})
export const openai = candidateOf('openai', { row: { reasoning: 'effort', max_tokens_field: 'max_completion_tokens' } })

export const TOOL = { type: 'function', function: { name: 'rain', parameters: { type: 'object' } } }
