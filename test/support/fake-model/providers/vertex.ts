import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { embed, speak, tokensOf } from '../speech.ts'
import { invalid, jsonReply, list, object, Refusal, sse, string, unknownName } from '../wire.ts'
import type { Json, ReceivedCall, Reply, Usage } from '../wire.ts'
import { claudeError, claudeErrorFrame } from './anthropic.ts'
import { messageReply } from './claude-answer.ts'
import { readMessages } from './claude-request.ts'
import { generate, googleError } from './gemini.ts'
import type { Clock, Provider } from './provider.ts'

export const VERTEX_PROJECT = 'fake-project'
export const VERTEX_LOCATION = 'europe-west4'

const EMAIL = `models@${VERTEX_PROJECT}.iam.gserviceaccount.com`
const AUDIENCE = 'https://oauth2.googleapis.com/token'
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
const LIFETIME_S = 3599

/** One key for all fakes of a process, made when first asked for. */
let pair: { publicKey: string; privateKey: string } | undefined
const keys = (): { publicKey: string; privateKey: string } =>
  (pair ??= generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  }))

/** The JSON key of the account that the fake knows. */
export const serviceAccount = (): Json => ({
  type: 'service_account',
  project_id: VERTEX_PROJECT,
  private_key_id: 'fakekey1',
  private_key: keys().privateKey,
  client_email: EMAIL,
  client_id: '1',
  auth_uri: 'https://accounts.google.com/o/oauth2/auth',
  token_uri: AUDIENCE,
})

const decode = (part: string): Json => object(JSON.parse(Buffer.from(part, 'base64url').toString()))

/** Why an assertion is no good. */
function faultOf(assertion: string, now: number): string | undefined {
  const [head = '', claims = '', signature = ''] = assertion.split('.')
  try {
    if (decode(head)['alg'] !== 'RS256') return 'Invalid JWT: alg must be RS256'
    const key = createPublicKey(keys().publicKey)
    if (!verify('RSA-SHA256', Buffer.from(`${head}.${claims}`), key, Buffer.from(signature, 'base64url'))) {
      return 'Invalid JWT Signature.'
    }
    const { iss, scope, aud, exp, iat } = decode(claims)
    if (iss !== EMAIL) return 'Invalid grant: account not found'
    if (scope !== SCOPE) return `Invalid OAuth scope or ID token audience provided: ${String(scope)}`
    if (aud !== AUDIENCE) return 'Invalid JWT: Failed audience check.'
    const seconds = now / 1000
    if (Number(exp) <= seconds || Number(iat) > seconds + 60)
      return 'Invalid JWT: Token must be a short-lived token and in a reasonable timeframe.'
    return Number(exp) - Number(iat) > 3600 ? 'Invalid JWT: Token must be a short-lived token (60 minutes).' : undefined
  } catch {
    return 'Bad Request'
  }
}

const ADDRESS = /^\/v1\/projects\/([^/]+)\/locations\/([^/]+)\/publishers\/(google|anthropic)\/models\/([^/:]+):(\w+)$/

export function vertex(clock: Clock): Provider {
  let exchanges = 0
  const tokens = new Map<string, number>()
  const exchange = ({ raw, method }: ReceivedCall): Reply => {
    exchanges++
    const form = new URLSearchParams(raw.toString())
    const isAssertion = form.get('grant_type') === 'urn:ietf:params:oauth:grant-type:jwt-bearer'
    const fault = method === 'POST' && isAssertion ? faultOf(form.get('assertion') ?? '', clock.now()) : 'Bad Request'
    if (fault !== undefined) return jsonReply({ error: 'invalid_grant', error_description: fault }, undefined, 400)
    const token = `ya29.fake-token-${exchanges}`
    tokens.set(token, clock.now() + LIFETIME_S * 1000)
    return jsonReply({ access_token: token, expires_in: LIFETIME_S, token_type: 'Bearer' })
  }
  const isGood = (authorization = ''): boolean => {
    const token = authorization.replace(/^Bearer /, '')
    return /^ya29\.fake-\d+$/.test(token) || (tokens.get(token) ?? 0) > clock.now()
  }
  const isClaude = ({ path }: ReceivedCall): boolean => path.includes('/publishers/anthropic/')
  return {
    credential: (url) => ({
      base_url: url,
      config: { project: VERTEX_PROJECT, location: VERTEX_LOCATION, service_account: JSON.stringify(serviceAccount()) },
    }),
    exchanges: () => exchanges,
    aside: (call) => {
      if (call.path === '/token') return exchange(call)
      if (!isGood(call.headers['authorization'])) {
        throw new Refusal(
          'auth',
          'Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential.',
        )
      }
      const [, project, , , , action = ''] = ADDRESS.exec(call.path) ?? []
      const known = ['generateContent', 'streamGenerateContent', 'predict', 'rawPredict', 'streamRawPredict']
      if (call.method !== 'POST' || !known.includes(action)) throw new Refusal('missing', 'Not Found')
      if (project !== VERTEX_PROJECT)
        throw new Refusal('permission', `Permission denied on resource project ${project}.`)
      return undefined
    },
    answer: (call, behaviour) => {
      const [, , , publisher, encoded = '', action = ''] = ADDRESS.exec(call.path) ?? []
      const model = decodeURIComponent(encoded)
      if (model.includes('missing')) throw new Refusal('missing', `Publisher Model \`${model}\` was not found.`)
      if (action === 'predict') return predict(call.body)
      if (publisher === 'google') return generate(call, model, action, behaviour)
      const prompt = readMessages(call.body, model, { hasSampling: true, isVertex: true, isCount: false })
      if (prompt.stream !== (action === 'streamRawPredict')) throw invalid('stream does not fit the method')
      return messageReply(speak(prompt, behaviour), prompt)
    },
    refuse: (refusal, call) => {
      const { failure } = refusal
      if (failure === 'auth') {
        const error = { code: 401, message: refusal.message, status: 'UNAUTHENTICATED' }
        return jsonReply({ error }, undefined, 401)
      }
      const own = isClaude(call) && !['missing', 'permission', 'rate'].includes(failure)
      const { status, body } = own ? claudeError(refusal, `req_vrtx_${call.number}`) : googleError(refusal)
      return jsonReply(body, undefined, status)
    },
    errorFrame: (refusal, call) => (isClaude(call) ? claudeErrorFrame(refusal) : sse(googleError(refusal).body)),
  }
}

function predict(body: unknown): Reply {
  const unknown = unknownName(object(body), ['instances', 'parameters'])
  const instances = list(object(body)['instances'])
  if (unknown !== undefined || instances.length === 0 || instances.length > 250) throw invalid('Invalid instances')
  const texts = instances.map((instance, i) => {
    const extra = unknownName(instance, ['content', 'task_type', 'title'])
    const content = string(instance['content'])
    if (extra !== undefined || content === '') throw invalid(`Invalid value at 'instances[${i}]'`)
    return content
  })
  const dimensions = Number(object(object(body)['parameters'])['outputDimensionality'] ?? 16)
  const predictions = texts.map((text) => ({
    embeddings: { values: embed(text, dimensions), statistics: { truncated: false, token_count: tokensOf(text) } },
  }))
  const input = texts.reduce((sum, text) => sum + tokensOf(text), 0)
  const usage: Usage = { input, output: 0, cacheRead: 0, cacheWrite: 0, cacheWrite1h: 0, reasoning: 0 }
  return jsonReply({ predictions, metadata: { billableCharacterCount: texts.join('').length } }, usage)
}
