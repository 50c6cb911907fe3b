import type { Dialect, Surface } from '../model.ts'
import type { Dispatcher, OutboundRequest } from '../outbound/dispatcher.ts'
import type { WholeAnswer } from '../outbound/whole-answer.ts'
import type { OpenCredential } from '../state/organization-state.ts'

/** A call as it will go out. */
export interface UpstreamCall {
  readonly surface: Surface | 'count_tokens' | 'models'
  /** The upstream name. */
  readonly model: string
  readonly stream: boolean
  /** Empty for GET. */
  readonly body: Buffer
  /** Headers of the client that travel on a relay of their dialect: `anthropic-version`, `anthropic-beta`, `openai-beta`. */
  readonly forwarded: Readonly<Record<string, string>>
}

/** What a relay has to change of a body for this kind. Contract: gateway.md 5.2. */
export interface RelayEdits {
  /** Top-level fields left out, and named in `x-mem-dropped`. */
  readonly drop: readonly string[]
  /** Top-level fields that have another name there. */
  readonly rename: Readonly<Record<string, string>>
  /** `stream_options.include_usage` is understood. */
  readonly streamUsage: boolean
  /** The body names the model, or the path alone does. */
  readonly modelInBody: boolean
}

/** A credential's way to its provider, made once for each version of it. */
export interface Upstream {
  readonly credential: OpenCredential
  readonly edits: RelayEdits
  /** Vertex speaks Anthropic's for `claude*`. */
  dialectOf(model: string): Dialect
  serves(surface: Surface, model: string): boolean
  /**
   * Synchronous where nothing must be signed or exchanged.
   * @throws UpstreamAuthError when a token exchange or role is refused
   */
  request(call: UpstreamCall): OutboundRequest | Promise<OutboundRequest>
  /** Gets a token and calls nobody else, where that alone proves a credential (vertex). @throws UpstreamAuthError */
  authenticate?(): Promise<void>
  /** Checks every address it connects to. Contract: gateway.md 10.2. */
  readonly dispatcher: Dispatcher
  /** A refusal that says the clocks differ: true when it was learnt, and the call may go out once more (SigV4). */
  learnSkew?(request: OutboundRequest, refusal: WholeAnswer): boolean
}

/** The provider, or who stands before it, takes the credential for no good: class `auth`. */
export class UpstreamAuthError extends Error {
  override readonly name = 'UpstreamAuthError'
}

/** The address is none that may be called: class `connect`, and 422 `address_refused` on management routes. */
export class AddressRefusedError extends Error {
  override readonly name = 'AddressRefusedError'
  readonly host: string

  constructor(host: string) {
    super(`${host} is an address that the configuration does not allow`)
    this.host = host
  }
}
