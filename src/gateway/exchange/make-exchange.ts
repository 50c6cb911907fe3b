import type { Clock } from '../../base/clock.ts'
import { UnsayableError } from '../chat/form.ts'
import { GatewayError } from '../errors.ts'
import type { Candidate } from '../routing/candidate.ts'
import type { OpenCredential } from '../state/organization-state.ts'
import { Embeddings } from './embeddings.ts'
import type { Exchange, InferenceRequest, MakeExchange } from './exchange.ts'
import { familyOf } from './family.ts'
import type { FaultView } from './faults.ts'
import { Relay } from './relay.ts'
import { Signatures } from './signatures.ts'
import { Translation } from './translation.ts'

export interface ExchangeParts {
  readonly clock: Clock
  /** Makes what takes these secrets out of a text, and all that look like one. */
  readonly redactor: (secrets: readonly string[]) => (text: string) => string
  /** Shared by all requests of a process. */
  readonly signatures?: Signatures
}

/** Makes exchanges: relays where the dialects are equal, translations elsewhere. Contract: gateway.md 5. */
export function createExchanges({ clock, redactor, signatures = new Signatures(clock) }: ExchangeParts): MakeExchange {
  const redact = (credential: OpenCredential) => (text: string) => redactor(secretsOf(credential))(text)
  return (request, candidate) => {
    const isRelay = familyOf(request.surface).dialect === candidate.dialect
    const view: FaultView = { isRelay, clock, redact: redact(candidate.upstream.credential) }
    const exchange = saying(() => exchangeOf(request, candidate, view, signatures))
    const [param] = exchange.dropped
    if (!request.strict || param === undefined) return exchange
    throw new GatewayError('unsupported_parameter', `${param} cannot be passed on to this model`, { param })
  }
}

function exchangeOf(
  request: InferenceRequest,
  candidate: Candidate,
  view: FaultView,
  signatures: Signatures,
): Exchange {
  if (view.isRelay) return new Relay(request, candidate, view)
  if (request.surface === 'embeddings') return new Embeddings(request, candidate, view)
  if (request.surface === 'responses') {
    throw new UnsayableError('unsupported_parameter', 'model', 'this model does not take v1/responses')
  }
  return new Translation(request, candidate, { signatures, view })
}

const secretsOf = ({ secrets, customHeaders }: OpenCredential): string[] => [
  ...Object.values(secrets),
  ...Object.values(customHeaders),
]

/** Anthropic's envelope has no place but the message for the field at fault. @throws GatewayError 400 */
function saying<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof UnsayableError)) throw error
    const { code, param, message, details } = error
    throw new GatewayError(code, message.includes(param) ? message : `${param}: ${message}`, { param, details })
  }
}
