import type { Candidate } from '../routing/candidate.ts'
import type { AttemptLimits } from './attempt.ts'
import { printable } from './header-text.ts'
import type { PlaneSettings } from './parts.ts'

/** What is the same for every call of a candidate. */
export interface CandidateFacts {
  /** `x-mem-credential`, `x-mem-provider`, `x-mem-model`, names and values in turn. */
  readonly headers: readonly string[]
  readonly limits: AttemptLimits
  /** For prices. */
  readonly baseModel: string | undefined
}

const made = new WeakMap<Candidate, { readonly settings: PlaneSettings; readonly facts: CandidateFacts }>()

/** Made at its first call: routes keep their candidates. */
export function factsOf(candidate: Candidate, settings: PlaneSettings): CandidateFacts {
  const known = made.get(candidate)
  if (known?.settings === settings) return known.facts
  const { name, kind, config, timeouts } = candidate.upstream.credential
  const { base_model: base } = config
  const facts = {
    headers: ['x-mem-credential', name, 'x-mem-provider', kind, 'x-mem-model', printable(candidate.model)],
    limits: {
      connectMs: timeouts.connect_ms ?? settings.timeouts.connect,
      firstByteMs: timeouts.first_byte_ms ?? settings.timeouts.first_byte,
      idleMs: timeouts.idle_ms ?? settings.timeouts.idle,
      totalMs: timeouts.total_ms ?? settings.timeouts.total,
      commitAfterMs: settings.commitAfterMs,
      maxBytes: settings.maxResponseBytes,
    },
    baseModel: typeof base === 'string' ? base : undefined,
  }
  made.set(candidate, { settings, facts })
  return facts
}
