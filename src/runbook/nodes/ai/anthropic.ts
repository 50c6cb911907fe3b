import * as z from 'zod'
import { fromJson } from '../../hcl/json.ts'
import { present } from '../settings.ts'
import { finishReason, type Conversation, type Provider } from './provider.ts'

const answerSchema = z.looseObject({
  stop_reason: z.string().nullish(),
  content: z.array(
    z.looseObject({
      type: z.string(),
      text: z.string().optional(),
      id: z.string().optional(),
      name: z.string().optional(),
      input: z.unknown().optional(),
    }),
  ),
  usage: z.looseObject({ input_tokens: z.number().default(0), output_tokens: z.number().default(0) }).optional(),
})

/** The messages API; it has no JSON mode, so the wish is part of the system prompt. */
export const anthropic: Provider = {
  baseUrl: 'https://api.anthropic.com/v1',
  defaultModel: 'claude-haiku-4-5',
  path: () => '/messages',
  headers: (apiKey) => ({
    'anthropic-version': '2023-06-01',
    ...(apiKey !== undefined && { 'x-api-key': apiKey }),
  }),
  body: (conversation) => ({
    ...present({
      model: conversation.model,
      max_tokens: conversation.maxTokens,
      system: systemPrompt(conversation),
      temperature: conversation.temperature,
    }),
    messages: messages(conversation),
    ...(conversation.tools.length > 0 && {
      tools: conversation.tools.map(({ name, description, parameters }) => ({
        name,
        description,
        input_schema: parameters,
      })),
    }),
  }),
  reply: (answer) => {
    const { content, stop_reason: reason, usage } = answerSchema.parse(answer)
    return {
      text: content.map((block) => (block.type === 'text' ? (block.text ?? '') : '')).join(''),
      finishReason: finishReason(reason),
      usage: { inputTokens: usage?.input_tokens ?? 0, outputTokens: usage?.output_tokens ?? 0 },
      toolCalls: content
        .filter(({ type }) => type === 'tool_use')
        .map(({ id = '', name = '', input }) => ({ id, name, arguments: fromJson(input ?? {}) })),
      ...(reason === 'refusal' && { refusal: 'the model declined' }),
      message: { role: 'assistant', content },
    }
  },
}

function systemPrompt({ system, json }: Conversation): string | undefined {
  if (!json) return system
  const schema = json.schema ? ` that matches this JSON Schema: ${JSON.stringify(json.schema)}` : ''
  return [...(system === undefined ? [] : [system]), `Answer with JSON only${schema}.`].join('\n\n')
}

function messages({ prompt, image, turns }: Conversation): object[] {
  const content = image
    ? [
        { type: 'image', source: { type: 'base64', media_type: image.mediaType, data: image.base64 } },
        { type: 'text', text: prompt },
      ]
    : prompt
  return [
    { role: 'user', content },
    ...turns.flatMap(({ reply, results }) => [
      Object(reply.message),
      {
        role: 'user',
        content: results.map(({ call, content: result }) => ({
          type: 'tool_result',
          tool_use_id: call.id,
          content: result,
        })),
      },
    ]),
  ]
}
