import type { Audit } from './audit.ts'
import type { CredentialHealth } from './credential-health.ts'
import type { FailureClass } from './model.ts'
import type { FinishedAttempt, FinishedCall } from './plane/parts.ts'
import type { Rejection } from './routing/candidate.ts'
import type { OpenCredential } from './state/organization-state.ts'

/** What calls tell of credentials: for the audit, and for whoever looks at their health. Contract: gateway.md 2.7. */
export class CallActs {
  readonly #audit: Audit
  readonly #health: CredentialHealth

  constructor(audit: Audit, health: CredentialHealth) {
    this.#audit = audit
    this.#health = health
  }

  /** Of every call that has ended; those that went well at once tell nothing. */
  finished({ attempts }: FinishedCall): void {
    for (const attempt of attempts) this.#attempted(attempt)
    const [first] = attempts
    const last = attempts.at(-1)
    if (!first || !last || last.class !== 'ok' || first === last) return
    const { credential } = first.candidate.upstream
    this.#audit.system(credential.organizationId, 'fallback.used', targetOf(credential))
  }

  /** A provider takes a credential for no good. */
  rejected(credential: OpenCredential, untilMs: number, rejection: Rejection): void {
    this.#audit.system(credential.organizationId, 'credential.rejected', targetOf(credential))
    this.#health.rejected(credential, untilMs, { code: 'upstream_credentials_rejected', ...rejection })
  }

  #attempted({ class: failure, candidate, status, unreached }: FinishedAttempt): void {
    const { credential } = candidate.upstream
    if (failure !== 'rate' && failure !== 'connect' && failure !== 'transient') return
    const action = failure === 'rate' ? 'credential.cooling' : 'provider.error'
    this.#audit.system(credential.organizationId, action, targetOf(credential))
    this.#health.failed(credential, { code: failure, status, message: unreached ?? failureOf(failure, status) })
  }
}

function failureOf(failure: FailureClass, status: number | undefined): string {
  if (failure === 'connect') return 'the provider cannot be reached'
  if (status === undefined) return 'the provider said nothing in time'
  return status < 300 ? 'the provider broke its answer off, or sent none' : `the provider answered ${status}`
}

const targetOf = ({ id, name }: OpenCredential) => ({ type: 'credential', id, name }) as const
