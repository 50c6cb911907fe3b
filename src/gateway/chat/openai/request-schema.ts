import * as z from 'zod'
import { cacheControl, present } from '../parse.ts'

/** What is read of a chat completion request; other fields are dropped by name. Source: the OpenAI API reference. */
const text = z.object({ type: z.literal('text'), text: z.string(), cache_control: cacheControl })

const image = z.object({
  type: z.literal('image_url'),
  image_url: z.object({ url: z.string(), detail: z.unknown().optional() }),
  cache_control: cacheControl,
})

const file = z.object({
  type: z.literal('file'),
  file: z.object({ file_data: z.string().optional(), filename: z.string().optional() }),
  cache_control: cacheControl,
})

const userPart = z.discriminatedUnion('type', [
  text,
  image,
  file,
  z.object({ type: z.literal('input_audio'), input_audio: z.object({ data: z.string(), format: z.string() }) }),
])

const assistantPart = z.discriminatedUnion('type', [
  text,
  z.object({ type: z.literal('refusal'), refusal: z.string() }),
])

const textContent = z.union([z.string(), z.array(text)])

const call = z.object({
  id: z.string(),
  index: z.unknown().optional(), // where it stands, as its place in the list says
  type: z.literal('function').optional(),
  function: z.object({ name: z.string(), arguments: z.string() }),
  extra_content: z
    .object({ google: z.object({ thought_signature: z.string() }).partial() })
    .partial()
    .nullish()
    .transform(present),
  cache_control: cacheControl,
})

const thinkingBlock = z.discriminatedUnion('type', [
  z.object({ type: z.literal('thinking'), thinking: z.string(), signature: z.string().optional() }),
  z.object({ type: z.literal('redacted_thinking'), data: z.string() }),
])

const name = z.string().nullish().transform(present)

const message = z.discriminatedUnion('role', [
  z.object({ role: z.enum(['system', 'developer']), content: textContent, name, cache_control: cacheControl }),
  z.object({
    role: z.literal('user'),
    content: z.union([z.string(), z.array(userPart)]),
    name,
    cache_control: cacheControl,
  }),
  z.object({
    role: z.literal('assistant'),
    name,
    cache_control: cacheControl,
    content: z
      .union([z.string(), z.array(assistantPart)])
      .nullish()
      .transform(present),
    refusal: z.string().nullish().transform(present),
    function_call: z.unknown().optional().transform(present),
    tool_calls: z.array(call).nullish().transform(present),
    reasoning_content: z.string().nullish().transform(present),
    thinking_blocks: z.array(thinkingBlock).nullish().transform(present),
  }),
  z.object({
    role: z.literal('tool'),
    tool_call_id: z.string(),
    name: z.unknown().optional(), // of the tool, as its call says
    content: z.union([z.string(), z.array(z.discriminatedUnion('type', [text, image, file]))]),
    cache_control: cacheControl,
  }),
])

const tool = z.object({
  type: z.literal('function'),
  function: z.object({
    name: z.string(),
    description: z.string().nullish().transform(present),
    parameters: z.record(z.string(), z.unknown()).nullish().transform(present),
    strict: z.boolean().nullish().transform(present),
  }),
  cache_control: cacheControl,
})

const choice = z.union([
  z.enum(['auto', 'none', 'required']),
  z.object({ type: z.literal('function'), function: z.object({ name: z.string() }) }),
])

const format = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text') }),
  z.object({ type: z.literal('json_object') }),
  z.object({
    type: z.literal('json_schema'),
    json_schema: z.object({
      name: z.string(),
      schema: z.unknown().optional(),
      strict: z.boolean().nullish().transform(present),
    }),
  }),
])

export const openAiRequest = z.object({
  model: z.unknown().optional(),
  messages: z.array(message).min(1),
  stream: z.boolean().nullish().transform(present),
  stream_options: z
    .object({ include_usage: z.boolean().nullish().transform(present) })
    .nullish()
    .transform(present),
  tools: z.array(tool).nullish().transform(present),
  tool_choice: choice.nullish().transform(present),
  parallel_tool_calls: z.boolean().nullish().transform(present),
  max_tokens: z.int().positive().nullish().transform(present),
  max_completion_tokens: z.int().positive().nullish().transform(present),
  temperature: z.number().nullish().transform(present),
  top_p: z.number().nullish().transform(present),
  stop: z
    .union([z.string(), z.array(z.string()).max(4)])
    .nullish()
    .transform(present),
  response_format: format.nullish().transform(present),
  reasoning_effort: z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']).nullish().transform(present),
  user: z.string().nullish().transform(present),
  safety_identifier: z.string().nullish().transform(present),
  seed: z.int().nullish().transform(present),
  frequency_penalty: z.number().nullish().transform(present),
  presence_penalty: z.number().nullish().transform(present),
  n: z.int().nullish().transform(present),
  functions: z.unknown().optional().transform(present),
  function_call: z.unknown().optional().transform(present),
})

export type OpenAiRequest = z.output<typeof openAiRequest>
export type OpenAiMessage = OpenAiRequest['messages'][number]
