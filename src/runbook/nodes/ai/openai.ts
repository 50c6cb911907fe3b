import * as z from 'zod'
import { fromJson, parseJson } from '../../hcl/json.ts'
import type { Value } from '../../hcl/values.ts'
import { present } from '../settings.ts'
import { finishReason, type Conversation, type Provider, type Reply } from './provider.ts'

const answerSchema = z.looseObject({
  choices: z
    .array(
      z.looseObject({
        finish_reason: z.string().nullish(),
        message: z.looseObject({
          content: z.string().nullish(),
          refusal: z.string().nullish(),
          tool_calls: z
            .array(
              z.looseObject({ id: z.string(), function: z.looseObject({ name: z.string(), arguments: z.string() }) }),
            )
            .nullish(),
        }),
      }),
    )
    .min(1),
  usage: z.looseObject({ prompt_tokens: z.number().default(0), completion_tokens: z.number().default(0) }).nullish(),
})

/** Chat completions; servers that copy the interface know the older name of the token limit. */
const chatCompletions = (tokenLimit: string): Pick<Provider, 'path' | 'headers' | 'body' | 'reply'> => ({
  path: () => '/chat/completions',
  headers: (apiKey) => (apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
  body: (conversation) => ({
    ...present({
      model: conversation.model,
      messages: messages(conversation),
      temperature: conversation.temperature,
      [tokenLimit]: conversation.maxTokens,
      response_format: responseFormat(conversation),
    }),
    ...(conversation.tools.length > 0 && {
      tools: conversation.tools.map((tool) => ({ type: 'function', function: tool })),
    }),
  }),
  reply: (answer) => toReply(answer),
})

export const openai: Provider = {
  baseUrl: 'https://api.openai.com/v1',
  defaultModel: 'gpt-4o-mini',
  ...chatCompletions('max_completion_tokens'),
}

export const openaiCompatible: Provider = chatCompletions('max_tokens')

function messages({ system, prompt, image, turns }: Conversation): object[] {
  const url = image && `data:${image.mediaType};base64,${image.base64}`
  const content =
    url === undefined
      ? prompt
      : [
          { type: 'text', text: prompt },
          { type: 'image_url', image_url: { url } },
        ]
  return [
    ...(system === undefined ? [] : [{ role: 'system', content: system }]),
    { role: 'user', content },
    ...turns.flatMap(({ reply, results }) => [
      reply.message,
      ...results.map(({ call, content: result }) => ({ role: 'tool', tool_call_id: call.id, content: result })),
    ]),
  ].map((message) => Object(message))
}

function responseFormat({ json }: Conversation): object | undefined {
  if (!json) return undefined
  if (!json.schema) return { type: 'json_object' }
  return { type: 'json_schema', json_schema: { name: 'response', schema: json.schema } }
}

function toReply(answer: Value): Reply {
  const { choices, usage } = answerSchema.parse(answer)
  const [choice] = choices
  const message = choice?.message
  const refusal = message?.refusal ?? (choice?.finish_reason === 'content_filter' ? 'content filter' : undefined)
  return {
    text: message?.content ?? '',
    finishReason: finishReason(choice?.finish_reason),
    usage: { inputTokens: usage?.prompt_tokens ?? 0, outputTokens: usage?.completion_tokens ?? 0 },
    toolCalls: (message?.tool_calls ?? []).map(({ id, function: { name, arguments: text } }) => ({
      id,
      name,
      arguments: argumentsOf(text),
    })),
    ...(refusal !== undefined && { refusal }),
    message,
  }
}

/** Models write arguments as text; what is no JSON stays text. */
function argumentsOf(text: string): Value {
  try {
    return text.trim() === '' ? fromJson({}) : parseJson(text)
  } catch {
    return text
  }
}
