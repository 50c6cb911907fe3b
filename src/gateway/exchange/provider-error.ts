import * as z from 'zod'
import { jsonOf } from '../../base/json.ts'

/** What a provider says of a failure, whatever its dialect. */
export interface ProviderError {
  readonly message: string | undefined
  readonly type: string | undefined
  readonly param: string | undefined
  readonly code: string | undefined
  /** Every name that it gives the failure: codes, types, reasons, exceptions. */
  readonly names: ReadonlySet<string>
  /** What Anthropic gives its clients to act upon. */
  readonly details: Readonly<Record<string, unknown>> | undefined
  /** When to come again, as `34s`. */
  readonly retryDelay: string | undefined
}

const text = z.string().optional().catch(undefined)
const name = z
  .union([z.string(), z.number().transform(String)])
  .optional()
  .catch(undefined)

const detail = z.object({ reason: text, retryDelay: text })

const fields = z.object({
  message: text,
  Message: text,
  type: text,
  __type: text,
  param: text,
  code: name,
  status: name,
  innererror: z.object({ code: text }).optional().catch(undefined),
  details: z
    .union([z.array(detail.catch({ reason: undefined, retryDelay: undefined })), z.record(z.string(), z.unknown())])
    .optional()
    .catch(undefined),
})

const body = fields.extend({
  error: z.union([z.string(), fields]).optional().catch(undefined),
  detail: z.unknown().optional(),
  promptFeedback: z.object({ blockReason: text, blockReasonMessage: text }).optional().catch(undefined),
  response: z.object({ error: fields.nullish() }).optional().catch(undefined),
})

const NOTHING = fields.parse({})

/** @param said a body or the data of an event. @param exception the name that stands beside it */
export function readProviderError(said: string, exception?: string): ProviderError {
  const { error: told, detail: rest, promptFeedback: blocked, response, ...top } = parse(said)
  const error = typeof told === 'string' ? { ...NOTHING, message: told } : (told ?? response?.error ?? top)
  const details = Array.isArray(error.details) ? error.details : []
  const names = [
    exception,
    error.code,
    error.type,
    error.status,
    error.innererror?.code,
    error.__type,
    ...details.map(({ reason }) => reason),
    blocked?.blockReason === undefined ? undefined : 'content_filter',
  ]
  const refusal = blocked?.blockReason && `the prompt was refused: ${blocked.blockReasonMessage ?? blocked.blockReason}`
  const message = error.message ?? error.Message ?? refusal ?? plain(rest)
  return {
    message: message === '' ? undefined : (message ?? plain(said)),
    type: error.type,
    param: error.param,
    code: error.code,
    names: new Set(names.flatMap((each) => (each ? [each.replace(/^.*#|:.*$/g, '')] : []))),
    details: Array.isArray(error.details) ? undefined : error.details,
    retryDelay: details.find(({ retryDelay }) => retryDelay !== undefined)?.retryDelay,
  }
}

function parse(said: string): z.output<typeof body> {
  const json = jsonOf(said)
  return body.catch(body.parse({})).parse(Array.isArray(json) ? json[0] : json)
}

/** What is neither JSON of a known form nor a page can be shown as it is. */
function plain(said: unknown): string | undefined {
  const shown = typeof said === 'string' ? said.trim() : said === undefined ? '' : JSON.stringify(said)
  return /^(?:$|\{\}$|<(?:!doctype|html))/i.test(shown) ? undefined : shown
}
