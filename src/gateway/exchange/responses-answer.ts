import * as z from 'zod'
import type { StopReason, Usage } from '../chat/events.ts'
import { present } from '../chat/parse.ts'

const count = z.int().nonnegative().nullish().transform(present)

const answer = z.object({
  id: z.string().optional(),
  model: z.string().optional(),
  status: z.string().optional(),
  error: z.unknown().optional(),
  incomplete_details: z.object({ reason: z.string().optional() }).nullish().transform(present),
  output: z.array(z.object({ type: z.string() })).optional(),
  usage: z
    .object({
      input_tokens: count,
      output_tokens: count,
      input_tokens_details: z.object({ cached_tokens: count }).nullish().transform(present),
      output_tokens_details: z.object({ reasoning_tokens: count }).nullish().transform(present),
    })
    .nullish()
    .transform(present),
})

/** What a response, whole or in the last event of a stream, tells of itself. */
export interface ResponseFacts {
  readonly id: string | undefined
  readonly model: string | undefined
  readonly usage: Usage | undefined
  readonly finishReason: StopReason | undefined
  readonly hasFailed: boolean
}

/** Undefined for what is no response. */
export function readResponse(json: unknown): ResponseFacts | undefined {
  const { data } = answer.safeParse(json)
  if (!data || (data.status === undefined && data.output === undefined)) return undefined
  const { usage } = data
  return {
    id: data.id,
    model: data.model,
    usage: usage && {
      input: usage.input_tokens ?? 0,
      cacheRead: usage.input_tokens_details?.cached_tokens ?? 0,
      cacheWrite: 0,
      cacheWrite1h: 0,
      output: usage.output_tokens ?? 0,
      reasoning: usage.output_tokens_details?.reasoning_tokens ?? 0,
    },
    finishReason: finishOf(data),
    hasFailed: data.status === 'failed' && data.error !== null && data.error !== undefined,
  }
}

/** Calls that the client is to answer; others the provider runs. */
const CALLS: ReadonlySet<string> = new Set([
  'function_call',
  'custom_tool_call',
  'local_shell_call',
  'shell_call',
  'apply_patch_call',
  'computer_call',
])

function finishOf({ status, incomplete_details: incomplete, output }: z.output<typeof answer>): StopReason | undefined {
  if (status === 'incomplete') return incomplete?.reason === 'content_filter' ? 'content_filter' : 'length'
  if (status !== 'completed') return undefined
  return output?.some(({ type }) => CALLS.has(type)) ? 'tool_calls' : 'stop'
}
