import * as z from 'zod'
import { cacheControl, present } from '../parse.ts'

/** What is read of a messages request; other fields are dropped by name. Source: the Anthropic API reference. */
const text = z.object({ type: z.literal('text'), text: z.string(), cache_control: cacheControl })

const textContent = z
  .union([z.string(), z.array(text)])
  .nullish()
  .transform(present)

const image = z.object({
  type: z.literal('image'),
  source: z.discriminatedUnion('type', [
    z.object({ type: z.literal('base64'), media_type: z.string(), data: z.string() }),
    z.object({ type: z.literal('url'), url: z.string() }),
  ]),
  cache_control: cacheControl,
})

const document = z.object({
  type: z.literal('document'),
  source: z.object({ type: z.literal('base64'), media_type: z.literal('application/pdf'), data: z.string() }),
  title: z.string().nullish().transform(present),
  cache_control: cacheControl,
})

const block = z.discriminatedUnion('type', [
  text,
  image,
  document,
  z.object({
    type: z.literal('tool_use'),
    id: z.string(),
    name: z.string(),
    input: z.record(z.string(), z.unknown()),
    cache_control: cacheControl,
  }),
  z.object({
    type: z.literal('tool_result'),
    tool_use_id: z.string(),
    content: z
      .union([z.string(), z.array(z.discriminatedUnion('type', [text, image, document]))])
      .nullish()
      .transform(present),
    is_error: z.boolean().nullish().transform(present),
    cache_control: cacheControl,
  }),
  z.object({ type: z.literal('thinking'), thinking: z.string(), signature: z.string() }),
  z.object({ type: z.literal('redacted_thinking'), data: z.string() }),
])

const tool = z.object({
  type: z.literal('custom').nullish().transform(present),
  name: z.string(),
  description: z.string().nullish().transform(present),
  input_schema: z.record(z.string(), z.unknown()),
  strict: z.boolean().nullish().transform(present),
  cache_control: cacheControl,
})

const single = { disable_parallel_tool_use: z.boolean().nullish().transform(present) }

export const anthropicRequest = z.object({
  model: z.unknown().optional(),
  max_tokens: z.int().positive(),
  messages: z
    .array(
      z.discriminatedUnion('role', [
        z.object({ role: z.enum(['user', 'assistant']), content: z.union([z.string(), z.array(block)]) }),
        z.object({ role: z.literal('system'), content: textContent }),
      ]),
    )
    .min(1),
  system: textContent,
  stream: z.boolean().nullish().transform(present),
  tools: z.array(tool).nullish().transform(present),
  tool_choice: z
    .discriminatedUnion('type', [
      z.object({ type: z.literal('auto'), ...single }),
      z.object({ type: z.literal('any'), ...single }),
      z.object({ type: z.literal('none') }),
      z.object({ type: z.literal('tool'), name: z.string(), ...single }),
    ])
    .nullish()
    .transform(present),
  temperature: z.number().nullish().transform(present),
  top_p: z.number().nullish().transform(present),
  top_k: z.int().nullish().transform(present),
  stop_sequences: z.array(z.string()).nullish().transform(present),
  thinking: z
    .discriminatedUnion('type', [
      z.object({ type: z.literal('enabled'), budget_tokens: z.int() }),
      z.object({ type: z.literal('adaptive') }),
      z.object({ type: z.literal('disabled') }),
    ])
    .nullish()
    .transform(present),
  output_config: z
    .object({
      effort: z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']).nullish().transform(present),
      format: z
        .object({ type: z.literal('json_schema'), schema: z.unknown() })
        .nullish()
        .transform(present),
    })
    .nullish()
    .transform(present),
  mcp_servers: z.array(z.unknown()).nullish().transform(present),
  thread: z.unknown().optional().transform(present),
  compaction: z.unknown().optional().transform(present),
  metadata: z
    .object({ user_id: z.string().nullish().transform(present) })
    .nullish()
    .transform(present),
})

export type AnthropicRequest = z.output<typeof anthropicRequest>
export type AnthropicContent = Extract<AnthropicRequest['messages'][number], { role: 'user' | 'assistant' }>['content']
