import { clip } from '../../base/clip.ts'
import type { Clock } from '../../base/clock.ts'
import { jsonOf } from '../../base/json.ts'
import type { Dialect } from '../model.ts'
import { redactor } from '../observe/redact.ts'
import { wholeAnswer } from '../outbound/whole-answer.ts'
import type { OpenCredential } from '../state/organization-state.ts'
import { errorOfStatus, errorOfThrown, type TestError } from './test-error.ts'
import { AddressRefusedError, type Upstream, type UpstreamCall } from './upstream.ts'

export type TestMode = 'auth' | 'chat' | 'embeddings'

export interface TestResult {
  readonly ok: boolean
  readonly mode: TestMode
  /** Upstream name that was called. */
  readonly model?: string
  readonly status?: number
  readonly latency_ms: number
  /** Names that the provider lists. */
  readonly models?: readonly string[]
  readonly error?: TestError
}

export interface CredentialTestParts {
  readonly makeUpstream: (credential: OpenCredential) => Upstream
  readonly clock: Clock
  /** 15 s when absent. */
  readonly patienceMs?: number
}

export interface TestOptions {
  readonly mode?: TestMode | undefined
  /** As a client names it. */
  readonly model?: string | undefined
}

const PATIENCE_MS = 15_000
const MAX_BYTES = 8 * 1024 * 1024
const MAX_MODELS = 1000
const NAME_CHARACTERS = 512
const MESSAGE_CHARACTERS = 500

interface Answer {
  readonly status: number
  readonly body: unknown
}

/**
 * Tries a credential out, saved or not, by one small call. Contract: gateway.md 3.5.
 * It throws AddressRefusedError; whatever else goes wrong is its result.
 */
export function createCredentialTest({ makeUpstream, clock, patienceMs = PATIENCE_MS }: CredentialTestParts) {
  return async (credential: OpenCredential, options: TestOptions = {}): Promise<TestResult> => {
    const upstream = makeUpstream(credential)
    const asked = options.mode ?? 'auth'
    const mode = asked === 'auth' && credential.kind === 'bedrock' ? 'chat' : asked
    const model = mode === 'auth' ? undefined : upstreamName(credential, options.model)
    const redact = redacted(credential)
    const begun = clock.now()
    const result = (outcome: Pick<TestResult, 'status' | 'models' | 'error'>): TestResult => ({
      ok: outcome.error === undefined,
      mode,
      ...(model !== undefined && { model }),
      ...outcome,
      latency_ms: clock.now() - begun,
    })
    const fail = ({ code, message }: TestError, status?: number): TestResult =>
      result({
        ...(status !== undefined && { status }),
        error: { code, message: clip(redact(message), MESSAGE_CHARACTERS) },
      })

    if (mode !== 'auth' && model === undefined) {
      return fail({
        code: 'missing_required_parameter',
        message: 'name a model to test: the credential has no default_model',
      })
    }
    if (mode !== 'auth' && !upstream.serves(mode, model ?? '')) {
      return fail({ code: 'unsupported_parameter', message: `${credential.kind} does not serve ${model} for ${mode}` })
    }
    try {
      const signal = AbortSignal.timeout(patienceMs)
      if (mode === 'auth' && upstream.authenticate) {
        await inTime(upstream.authenticate(), signal)
        return result({})
      }
      const { status, body } = await send(upstream, callOf(upstream, mode, model ?? ''), signal)
      const error = errorOfStatus(status, body, mode)
      if (error) return fail(error, status)
      return result({
        status,
        ...(mode === 'auth' && { models: namesIn(body).map((name) => clip(redact(name), NAME_CHARACTERS)) }),
      })
    } catch (error) {
      if (error instanceof AddressRefusedError) throw error
      return fail(errorOfThrown(error))
    }
  }
}

const redacted = ({ secrets, customHeaders }: OpenCredential): ((text: string) => string) =>
  redactor([...Object.values(secrets), ...Object.values(customHeaders)])

/** Contract: gateway.md 4.2. */
function upstreamName(credential: OpenCredential, asked: string | undefined): string | undefined {
  const { defaultModel, modelMapping, allowedModels, config, kind } = credential
  const { deployment } = config
  const ofAzure = kind === 'azure-openai' && typeof deployment === 'string' ? deployment : undefined
  const exact = allowedModels.find((name) => !name.endsWith('*'))
  const name = asked ?? defaultModel ?? ofAzure ?? exact ?? modelMapping.keys().next().value
  if (name === undefined) return undefined
  return modelMapping.get(name) ?? (name === defaultModel ? (ofAzure ?? name) : name)
}

function callOf(upstream: Upstream, mode: TestMode, model: string): UpstreamCall {
  const still = { model, stream: false, forwarded: {} }
  if (mode === 'auth') return { ...still, surface: 'models', body: Buffer.alloc(0) }
  const surface = mode === 'chat' ? 'chat' : 'embeddings'
  const { credential } = upstream
  const body =
    mode === 'chat' ? chatBody(credential, upstream.dialectOf(model), model) : embeddingBody(credential, model)
  return { ...still, surface, body: Buffer.from(JSON.stringify(body)) }
}

const PROMPT = 'Reply with the word ok.'
const FEW_TOKENS = 16

/** No output cap in OpenAI's dialect: its name differs between models, and a wrong one would fail a good credential. */
function chatBody({ config, kind }: OpenCredential, dialect: Dialect, model: string): object {
  const messages = [{ role: 'user', content: PROMPT }]
  switch (dialect) {
    case 'openai':
      return { model, messages }
    case 'anthropic': {
      const named = kind === 'vertex' ? { anthropic_version: config['anthropic_version'] } : { model }
      return { ...named, max_tokens: FEW_TOKENS, messages }
    }
    case 'gemini':
      return { contents: [{ role: 'user', parts: [{ text: PROMPT }] }] }
    case 'converse':
      return {
        messages: [{ role: 'user', content: [{ text: PROMPT }] }],
        inferenceConfig: { maxTokens: FEW_TOKENS },
      }
  }
}

/** Contract: gateway.md 5.6. */
function embeddingBody({ kind }: OpenCredential, model: string): object {
  if (kind === 'gemini') return { requests: [{ model: `models/${model}`, content: { parts: [{ text: 'ok' }] } }] }
  if (kind === 'vertex') return { instances: [{ content: 'ok' }] }
  if (kind !== 'bedrock') return { model, input: 'ok' }
  return model.includes('cohere') ? { texts: ['ok'], input_type: 'search_document' } : { inputText: 'ok' }
}

/** The call, and once more when it taught the provider's time. */
async function send(upstream: Upstream, call: UpstreamCall, signal: AbortSignal, isSecond = false): Promise<Answer> {
  const request = await inTime(Promise.resolve(upstream.request(call)), signal)
  const answer = await wholeAnswer(upstream.dispatcher, request, { body: call.body, signal, maxBytes: MAX_BYTES })
  if (!isSecond && upstream.learnSkew?.(request, answer)) return send(upstream, call, signal, true)
  return { status: answer.status, body: jsonOf(answer.body.toString()) }
}

/** Of a list of models: `{data: [{id}]}`, or Gemini's `{models: [{name: "models/…"}]}`. */
function namesIn(body: unknown): string[] {
  const { data, models }: { data?: unknown; models?: unknown } = Object(body)
  const rows: unknown[] = [data, models].find((list) => Array.isArray(list)) ?? []
  return rows.slice(0, MAX_MODELS).flatMap((row): string[] => {
    const { id, name }: { id?: unknown; name?: unknown } = Object(row)
    if (typeof id === 'string') return [id]
    return typeof name === 'string' ? [name.replace(/^models\//, '')] : []
  })
}

/** Waits no longer than the signal lets it. */
async function inTime<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  let giveUp = (): void => undefined
  const late = new Promise<never>((_, reject) => {
    giveUp = () => reject(signal.reason)
    signal.addEventListener('abort', giveUp)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    signal.removeEventListener('abort', giveUp)
  }
}
