import { NodeError } from '../../errors.ts'
import { fromJson } from '../../hcl/json.ts'
import type { Value } from '../../hcl/values.ts'
import type { HttpResponse } from '../../outbound/request.ts'
import type { NodeContext, NodeResult } from '../../registry.ts'
import type { Schema } from '../../schema.ts'
import { decodeBody, statusError } from '../answers.ts'
import { optionalText } from '../settings.ts'

export const CHAT_TIMEOUT_MS = 30_000

/** Attributes of every chat. */
export const WHERE: Readonly<Record<string, Schema>> = {
  webhookUrl: { type: 'string', format: 'url', sensitive: true },
  channel: { type: 'string', minLength: 1, description: 'Without webhookUrl: a channel of the configuration' },
}

/** The webhook of the node, or the one configured for its channel. @throws NodeError config_invalid */
export function webhookOf({ config, services }: NodeContext, type: string, alias: string): string {
  const given = optionalText(config, 'webhookUrl')
  if (given !== undefined) return given
  const channel = optionalText(config, 'channel')
  if (channel === undefined)
    throw new NodeError('config_invalid', 'give "webhookUrl", or a "channel" of the configuration')
  const configured = Object.entries(services.channels ?? {}).find(([name]) => name === channel)?.[1]
  if (!configured) throw new NodeError('config_invalid', `no channel "${channel}" under runbook.channels`)
  if (configured.type !== type && configured.type !== alias) {
    throw new NodeError('config_invalid', `the channel "${channel}" is for ${configured.type}`)
  }
  if (configured.webhookUrl !== undefined) return configured.webhookUrl
  throw new NodeError('config_invalid', `the variable that webhook_url_env of channel "${channel}" names is not set`)
}

/** At least one of these attributes has to have a value. @throws NodeError config_invalid */
export function requireOneOf({ config }: NodeContext, ...names: string[]): void {
  if (names.some((name) => config[name] !== undefined && config[name] !== '')) return
  throw new NodeError('config_invalid', `give one of ${names.join(', ')}`)
}

/** Posts JSON; every answer but 2xx is an error. Contract: runbook.md 6.3. */
export async function post(
  { http }: Pick<NodeContext, 'http'>,
  url: string,
  body: object,
  headers: Record<string, string> = {},
): Promise<HttpResponse> {
  const response = await http(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
    body: JSON.stringify(body),
  })
  const { status } = response
  if (status >= 200 && status < 300) return response
  throw serviceError(response)
}

/** The error for an answer that is no success: who asked, what was asked, or the service. */
export function serviceError(response: HttpResponse): NodeError {
  const { status } = response
  if ([401, 403, 404].includes(status)) return statusError(response, 'auth_failed')
  return statusError(response, status >= 500 ? 'http_status' : 'service_rejected')
}

export const sent = (response: HttpResponse, more: Record<string, Value> = {}): NodeResult => ({
  output: fromJson({ success: true, statusCode: response.status, response: decodeBody(response), ...more }),
})
