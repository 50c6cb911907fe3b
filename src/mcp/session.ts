import * as z from 'zod'
import { secretEquals } from '../base/hash.ts'
import { isMap } from '../base/json.ts'
import { MEMORY_ERRORS, MemoryError, invalidInput } from '../memory/errors.ts'
import { providerOf, verificationFailed, type Claim } from '../memory/identity.ts'
import type { Logger } from '../memory/ports.ts'
import { parseWith } from '../memory/routes/route.ts'
import type { MemoryTools } from '../memory/tools/index.ts'
import { agentIdSchema } from '../memory/requests.ts'
import type { ToolPeer } from '../memory/tools/tool.ts'
import { Calls, CANCELLED } from './calls.ts'
import {
  ERRORS,
  errorOf,
  idOf,
  readFrame,
  readMessage,
  resultOf,
  RpcError,
  type Message,
  type Params,
  type Response,
} from './frames.ts'
import {
  capabilities,
  DEFAULT_REVISION,
  metaOf,
  namedRevision,
  negotiate,
  requireEnvelope,
  serverInfo,
  STATELESS_REVISION,
  statelessResult,
  type Revision,
} from './revisions.ts'

// The official server library answers failed tools as results and gates nothing before `initialize`, so that the rules
// of memory.md 12.1 on errors, arrays, keys and versions could not be kept over it; its client is used in the tests.

export interface SessionParts {
  tools: Pick<MemoryTools, 'descriptions' | 'verify' | 'prepare'>
  log: Logger
  /** The key of the server, if it has one. */
  apiKey: string | undefined
}

/** What a transport knows of the other side from the start. */
export interface Peer extends ToolPeer {
  /** It has shown the key already, or needs none. */
  authorized: boolean
  pinned?: Claim | undefined
  revision?: Revision
  calls?: Calls
  /** Aborts when nobody waits for the answers any more: in the stateless revision that cancels. */
  gone?: AbortSignal
}

/** One connection: its handshake, and the calls that follow. Contract: memory.md 12.1. */
export class Session {
  readonly #parts: SessionParts
  readonly #peer: ToolPeer
  readonly #calls: Calls
  readonly #gone: AbortSignal | undefined
  #authorized: boolean
  #pinned: Claim | undefined
  #revision: Revision
  #isBegun = false

  constructor(parts: SessionParts, peer: Peer) {
    const { authorized, pinned, revision = DEFAULT_REVISION, calls = new Calls(), gone, ...rest } = peer
    this.#parts = parts
    this.#peer = rest
    this.#calls = calls
    this.#gone = gone
    this.#authorized = authorized
    this.#pinned = pinned
    this.#revision = revision
  }

  /** The agent that all writes are by. */
  get pinned(): Claim | undefined {
    return this.#pinned
  }

  /** Whether a handshake has been made over it. */
  get isBegun(): boolean {
    return this.#isBegun
  }

  /** Answers a frame; undefined when nothing is to be said. Never rejects: a bad frame ends nothing. */
  async receive(bytes: Uint8Array): Promise<string | undefined> {
    let frame: unknown
    try {
      frame = readFrame(bytes)
    } catch (error) {
      return errorOf(null, this.#toRpcError(error)).frame
    }
    return (await this.answer(frame))?.frame
  }

  /** Answers a message, or an array of them one after the other; undefined when there were only notifications. */
  async answer(frame: unknown): Promise<Response | undefined> {
    if (!Array.isArray(frame)) return this.#answerOne(frame)
    const frames: string[] = []
    for (const message of frame) {
      const answer = await this.#answerOne(message)
      if (answer) frames.push(answer.frame)
    }
    return frames.length === 0 ? undefined : { frame: `[${frames.join(',')}]`, status: 200 }
  }

  async #answerOne(message: unknown): Promise<Response | undefined> {
    try {
      const { id, method, params } = readMessage(message)
      if (id === undefined) return this.#heed(method, params)
      return await this.#calls.run(id, async (ending) => {
        const result = await this.#run({ method, params }, ending)
        return isCancelled(ending) ? undefined : resultOf(id, result)
      })
    } catch (error) {
      return error === CANCELLED ? undefined : errorOf(idOf(message), this.#toRpcError(error))
    }
  }

  #heed(method: string, params: Params): undefined {
    if (method === 'notifications/cancelled') this.#calls.cancel(params['requestId'])
  }

  /** The result as JSON. */
  async #run({ method, params }: Message, ending: AbortController): Promise<string> {
    const isStateless = namedRevision(params) !== undefined
    if (method === 'initialize' && !isStateless) return JSON.stringify(this.#initialize(params))
    if (!this.#authorized && !(isStateless && this.#isKey(metaOf(params)['apiKey']))) throw unauthorized(NO_KEY)
    if (!isStateless) return this.#dispatch(method, params, this.#revision, this.#pinned, ending)
    requireEnvelope(params)
    const pinned = this.#readClaim(metaOf(params)) ?? this.#pinned
    const cancel = (): void => ending.abort(CANCELLED)
    if (this.#gone?.aborted) cancel()
    this.#gone?.addEventListener('abort', cancel)
    return statelessResult(method, await this.#dispatch(method, params, STATELESS_REVISION, pinned, ending))
  }

  async #dispatch(
    method: string,
    params: Params,
    revision: Revision,
    pinned: Claim | undefined,
    ending: AbortController,
  ): Promise<string> {
    if (method === 'tools/call') return this.#call(params, revision, pinned, ending)
    if (method === 'tools/list') {
      return JSON.stringify({ tools: this.#parts.tools.descriptions.map(revision.describe) })
    }
    if (method === 'ping' && !revision.stateless) return '{}'
    if (method === 'server/discover' && revision.stateless) {
      return JSON.stringify({ supportedVersions: [revision.id], capabilities })
    }
    throw new RpcError(ERRORS.method, `there is no method ${method}`, undefined, revision.stateless ? 404 : 200)
  }

  /** Nothing changes unless all of it is right: the key, then the agent. */
  #initialize(params: Params): object {
    const said = { ...metaOf(params), ...params }
    if (said['apiKey'] !== undefined && !this.#isKey(said['apiKey'])) throw unauthorized(WRONG_KEY)
    if (said['apiKey'] === undefined && !this.#authorized) throw unauthorized(NO_KEY)
    this.#pinned = this.#readClaim(said) ?? this.#pinned
    this.#authorized = true
    this.#isBegun = true
    this.#revision = negotiate(params['protocolVersion'])
    return { protocolVersion: this.#revision.id, capabilities, serverInfo }
  }

  /** Any key is right where none is configured. */
  #isKey(given: unknown): boolean {
    const { apiKey } = this.#parts
    return apiKey === undefined || (typeof given === 'string' && secretEquals(given, apiKey))
  }

  /** The agent that a handshake names, verified. */
  #readClaim(said: Params): Claim | undefined {
    if (said['agentId'] === undefined) return undefined
    const { agentId, identityProvider: provider } = refuseAs(ERRORS.arguments, {}, () =>
      parseWith(handshakeAgent, said),
    )
    const proof = said['identityProof']
    return refuseAs(ERRORS.unauthorized, {}, () => {
      if (proof !== undefined && !isMap(proof)) {
        throw verificationFailed(providerOf(provider), 'identityProof must be an object')
      }
      const claim = { agentId, provider, proof }
      this.#parts.tools.verify(claim)
      return claim
    })
  }

  async #call(
    { name, arguments: args = {} }: Params,
    revision: Revision,
    pinned: Claim | undefined,
    ending: AbortController,
  ): Promise<string> {
    const tool = typeof name === 'string' ? name : ''
    const run = refuseAs(ERRORS.arguments, { tool }, () => {
      if (!isMap(args)) throw invalidInput('arguments must be an object', 'arguments')
      return this.#parts.tools.prepare(tool, args, this.#peer, pinned)
    })
    try {
      const answer = await run(ending)
      const structured = revision.structured ? `"structuredContent":${answer},` : ''
      return `{"content":[{"type":"text","text":${JSON.stringify(answer)}}],${structured}"isError":false}`
    } catch (error) {
      if (isCancelled(ending)) throw CANCELLED
      const known = this.#toMemoryError(error)
      throw new RpcError(ERRORS.operation, known.message, { tool, ...dataOf(known) })
    }
  }

  #toRpcError(error: unknown): RpcError {
    if (error instanceof RpcError) return error
    const known = this.#toMemoryError(error)
    return new RpcError(ERRORS.operation, known.message, dataOf(known))
  }

  /** A refusal of the service, or a fault whose text never leaves. */
  #toMemoryError(error: unknown): MemoryError {
    if (error instanceof MemoryError) return error
    this.#parts.log.error({ err: error }, 'a tool call failed')
    return new MemoryError('internal_error', 'the server met a fault; it is in the log')
  }
}

/** Not merely out of time. */
const isCancelled = ({ signal }: AbortController): boolean => signal.reason === CANCELLED

const NO_KEY = 'initialize with apiKey first: this server has a key'
const WRONG_KEY = 'apiKey is not the key of this server'
const unauthorized = (message: string): RpcError =>
  new RpcError(ERRORS.unauthorized, message, dataOf(new MemoryError('unauthorized', message)))

const handshakeAgent = z.object({ agentId: agentIdSchema, identityProvider: z.string().optional() })

/** Gives a refusal of the service the code that it has at this place. */
function refuseAs<T>(code: number, data: object, action: () => T): T {
  try {
    return action()
  } catch (error) {
    throw error instanceof MemoryError ? new RpcError(code, error.message, { ...data, ...dataOf(error) }) : error
  }
}

/** What a program needs of a refusal. */
const dataOf = ({ code, details }: MemoryError): object => ({ error_code: code, status: MEMORY_ERRORS[code], details })
