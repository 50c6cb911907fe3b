import type { Target } from '../chat/target.ts'
import type { Candidate } from '../routing/candidate.ts'

const DEFAULT_MAX_TOKENS = 4096
/** The version of Anthropic's interface that takes no sampling. */
const NO_SAMPLING = '2026-10-21'

/** What the writer of a candidate's dialect has to know of its model. Contract: gateway.md 2.1, 2.5, 5.3. */
export function targetOf({ upstream: { credential }, model, dialect, row }: Candidate): Target {
  const { default_max_tokens: tokens, anthropic_version: version } = credential.config
  const isNewest = credential.kind === 'openai' || credential.kind === 'azure-openai'
  return {
    model,
    sampling: (row?.sampling ?? true) && version !== NO_SAMPLING,
    // Of a model that nobody knows, an OpenAI-compatible provider judges itself.
    reasoning: row?.reasoning ?? (dialect === 'openai' ? 'effort' : 'none'),
    ...(row?.efforts && { efforts: row.efforts }),
    defaultMaxTokens: typeof tokens === 'number' ? tokens : DEFAULT_MAX_TOKENS,
    maxTokensField: row?.max_tokens_field ?? (isNewest ? 'max_completion_tokens' : 'max_tokens'),
  }
}
