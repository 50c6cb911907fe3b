import type { Clock } from '../../base/clock.ts'
import type { Dispatcher, OutboundRequest } from '../outbound/dispatcher.ts'
import type { OpenCredential } from '../state/organization-state.ts'
import { baseOf, labelOf, lazily, NO_EDITS, unserved } from './base.ts'
import { readyHeaders } from './headers.ts'
import { modelPath } from './model-path.ts'
import { AwsClock, AwsSigner, type AwsKeys } from './signing/sigv4.ts'
import type { Upstream, UpstreamCall } from './upstream.ts'

/**
 * Bedrock by key pair or role (signed), or by an API key. Contract: gateway.md 5.2, 5.6.
 * @param keysNow of the pair or role; may throw UpstreamAuthError
 */
export function bedrockUpstream(
  credential: OpenCredential,
  dispatcher: Dispatcher,
  clock: Clock,
  keysNow: () => AwsKeys | Promise<AwsKeys>,
): Upstream {
  const { api_key: apiKey } = credential.secrets
  const ready = lazily(() => {
    const region = labelOf(credential, 'region')
    const own: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
    const base = baseOf(credential.baseUrl ?? `https://bedrock-runtime.${region}.amazonaws.com`)
    return { region, ...base, host: new URL(base.origin).host, headers: readyHeaders(credential, own) }
  })
  const theirClock = new AwsClock(clock)
  const signer = lazily(() => new AwsSigner('bedrock', ready().region, theirClock))
  const unsigned: Omit<Upstream, 'request'> = {
    credential,
    dispatcher,
    edits: { ...NO_EDITS, modelInBody: false },
    dialectOf: () => 'converse',
    serves: (surface) => surface !== 'responses',
  }
  if (apiKey !== undefined) {
    return {
      ...unsigned,
      request: (call) => {
        const { origin, prefix, headers } = ready()
        return { method: 'POST', origin, path: prefix + pathOf(call), headers }
      },
    }
  }
  return {
    ...unsigned,
    request: (call) => {
      const { origin, host, prefix, headers } = ready()
      const path = prefix + pathOf(call)
      const signed = (keys: AwsKeys): OutboundRequest => ({
        method: 'POST',
        origin,
        path,
        headers: [...headers, ...signer().sign({ host, path, body: call.body }, keys)],
      })
      const keys = keysNow()
      return keys instanceof Promise ? keys.then(signed) : signed(keys)
    },
    learnSkew: (request, { status, headers, body }) =>
      theirClock.learn(status, headers['date'], `${headers['x-amzn-errortype']} ${body.toString()}`, request.headers),
  }
}

function pathOf({ surface, model, stream }: UpstreamCall): string {
  if (surface === 'models' || surface === 'count_tokens') throw unserved('bedrock', surface)
  const verb = surface === 'embeddings' ? 'invoke' : stream ? 'converse-stream' : 'converse'
  return `/model/${modelPath(model)}/${verb}`
}
