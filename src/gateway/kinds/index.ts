import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../platform/ports.ts'
import type { OpenCredential } from '../state/organization-state.ts'
import { anthropicUpstream } from './anthropic.ts'
import { azureOpenAiUpstream } from './azure-openai.ts'
import { labelOf, textOf } from './base.ts'
import { bedrockUpstream } from './bedrock.ts'
import { geminiUpstream } from './gemini.ts'
import type { Network } from './network.ts'
import { openAiUpstream } from './openai.ts'
import { AwsRoles } from './signing/aws-roles.ts'
import type { RenewalParts } from './signing/renewed.ts'
import { GoogleTokens, TOKEN_URI } from './signing/service-account.ts'
import type { AwsKeys } from './signing/sigv4.ts'
import { UpstreamAuthError, type Upstream } from './upstream.ts'
import { vertexUpstream } from './vertex.ts'

export interface UpstreamParts {
  readonly clock: Clock
  /** In [0, 1): spreads repeated renewals. */
  readonly random: () => number
  readonly log: Logger
  readonly network: Network
  /** `gateway.runtime_roles` */
  readonly runtimeRoles: readonly (number | '*')[]
  /**
   * The process's variables, of which those are read that the clouds' own programs read: `AWS_WEB_IDENTITY_TOKEN_FILE`,
   * `AWS_ROLE_ARN`, `AWS_CONTAINER_CREDENTIALS_FULL_URI`, `GCE_METADATA_HOST` ...
   */
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Where Google's token address is: a test has its own. */
  readonly tokenAddress?: string
}

/** Makes the upstream of a credential, the same one for the same object; tokens and keys of roles are shared by all. */
export function createUpstreams(parts: UpstreamParts): (credential: OpenCredential) => Upstream {
  const { network, environment, tokenAddress = TOKEN_URI } = parts
  const renewal: RenewalParts = { clock: parts.clock, random: parts.random, log: parts.log }
  const aws = new AwsRoles({ ...renewal, dispatcher: () => network.fixed(), environment })
  const google = new GoogleTokens({
    ...renewal,
    dispatcher: () => network.fixed(),
    tokenAddress,
    metadataHost: environment['GCE_METADATA_HOST'] ?? 'metadata.google.internal',
  })
  const made = new WeakMap<OpenCredential, Upstream>()

  const create = (credential: OpenCredential): Upstream => {
    const { kind } = credential
    const dispatcher = network.dispatcher(credential.timeouts.connect_ms)
    switch (kind) {
      case 'openai':
      case 'mistral':
      case 'groq':
      case 'ollama':
      case 'openai-compatible':
        return openAiUpstream(kind, credential, dispatcher)
      case 'azure-openai':
        return azureOpenAiUpstream(credential, dispatcher)
      case 'anthropic':
        return anthropicUpstream(credential, dispatcher)
      case 'gemini':
        return geminiUpstream(credential, dispatcher)
      case 'vertex':
        return vertexUpstream(credential, dispatcher, () => tokenOf(credential))
      case 'bedrock':
        return bedrockUpstream(credential, dispatcher, parts.clock, () => keysOf(credential))
    }
  }

  const tokenOf = (credential: OpenCredential): string | Promise<string> => {
    const { service_account: account } = credential.secrets
    if (usesRole(credential)) {
      if (!mayHoldToken(credential))
        throw new UpstreamAuthError('the token of this machine does not go to its base_url')
      return google.ofMachine().get()
    }
    if (account === undefined) throw new UpstreamAuthError('the credential has neither a service account nor a role')
    return google.ofServiceAccount(account).get()
  }

  /** Such a token opens all that the role may: whoever sets a base_url must not be able to read it there. */
  const mayHoldToken = ({ baseUrl }: OpenCredential): boolean =>
    baseUrl === undefined || network.isAllowed(baseUrl) || new URL(baseUrl).hostname.endsWith('.googleapis.com')

  const keysOf = (credential: OpenCredential): AwsKeys | Promise<AwsKeys> => {
    if (!usesRole(credential)) return keyPair(credential)
    const [region, roleArn] = [labelOf(credential, 'region'), textOf(credential, 'role_arn')]
    if (roleArn === '') return aws.ofProcess(region).get()
    return aws.assumed(region, roleArn, `mem-gateway-${credential.organizationId}`).get()
  }

  const usesRole = ({ config, organizationId, userId }: OpenCredential): boolean => {
    if (config['use_runtime_role'] !== true) return false
    const isAllowed = parts.runtimeRoles.some((each) => each === '*' || each === organizationId)
    if (isAllowed && userId === undefined) return true
    throw new UpstreamAuthError('gateway.runtime_roles does not let this organization use the role of this machine')
  }

  return (credential) => {
    const upstream = made.get(credential) ?? create(credential)
    made.set(credential, upstream)
    return upstream
  }
}

function keyPair({ config, secrets }: OpenCredential): AwsKeys {
  const { access_key_id: accessKeyId } = config
  const { secret_access_key: secretAccessKey, session_token: sessionToken } = secrets
  if (typeof accessKeyId !== 'string' || secretAccessKey === undefined) {
    throw new UpstreamAuthError('the credential has neither a key pair, an API key nor a role')
  }
  return { accessKeyId, secretAccessKey, sessionToken }
}
