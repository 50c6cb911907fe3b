import * as z from 'zod'
import { fromJson } from '../../hcl/json.ts'
import { present } from '../settings.ts'
import { finishReason, type Conversation, type Provider } from './provider.ts'

const answerSchema = z.looseObject({
  done_reason: z.string().optional(),
  message: z.looseObject({
    content: z.string().default(''),
    tool_calls: z
      .array(z.looseObject({ function: z.looseObject({ name: z.string(), arguments: z.unknown().optional() }) }))
      .default([]),
  }),
  prompt_eval_count: z.number().default(0),
  eval_count: z.number().default(0),
})

export const ollama: Provider = {
  defaultModel: 'llama3.2',
  path: () => '/api/chat',
  headers: () => ({}),
  body: (conversation) => ({
    model: conversation.model,
    stream: false,
    messages: messages(conversation),
    options: present({ temperature: conversation.temperature, num_predict: conversation.maxTokens }),
    ...(conversation.json && { format: conversation.json.schema ?? 'json' }),
    ...(conversation.tools.length > 0 && {
      tools: conversation.tools.map((tool) => ({ type: 'function', function: tool })),
    }),
  }),
  reply: (answer) => {
    const { message, ...rest } = answerSchema.parse(answer)
    return {
      text: message.content,
      finishReason: message.tool_calls.length > 0 ? 'tool_calls' : finishReason(rest.done_reason),
      usage: { inputTokens: rest.prompt_eval_count, outputTokens: rest.eval_count },
      toolCalls: message.tool_calls.map(({ function: { name, arguments: args } }, i) => ({
        id: `call_${i}`,
        name,
        arguments: fromJson(args ?? {}),
      })),
      message,
    }
  },
}

function messages({ system, prompt, image, turns }: Conversation): object[] {
  return [
    ...(system === undefined ? [] : [{ role: 'system', content: system }]),
    { role: 'user', content: prompt, ...(image && { images: [image.base64] }) },
    ...turns.flatMap(({ reply, results }) => [
      Object(reply.message),
      ...results.map(({ call, content }) => ({ role: 'tool', tool_name: call.name, content })),
    ]),
  ]
}
