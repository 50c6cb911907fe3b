import * as z from 'zod'
import { fromJson } from '../../hcl/json.ts'
import { present } from '../settings.ts'
import { finishReason, type Conversation, type Provider } from './provider.ts'

const partSchema = z.looseObject({
  text: z.string().optional(),
  functionCall: z.looseObject({ id: z.string().optional(), name: z.string(), args: z.unknown().optional() }).optional(),
})

const answerSchema = z.looseObject({
  candidates: z
    .array(
      z.looseObject({
        finishReason: z.string().optional(),
        content: z.looseObject({ parts: z.array(partSchema).default([]) }).optional(),
      }),
    )
    .default([]),
  promptFeedback: z.looseObject({ blockReason: z.string().optional() }).optional(),
  usageMetadata: z
    .looseObject({ promptTokenCount: z.number().default(0), candidatesTokenCount: z.number().default(0) })
    .optional(),
})

const BLOCKED = ['safety', 'recitation', 'blocklist', 'prohibited_content', 'spii']

export const gemini: Provider = {
  baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
  defaultModel: 'gemini-2.5-flash',
  path: ({ model }) => `/models/${encodeURIComponent(model)}:generateContent`,
  // a key in the URL would end in logs
  headers: (apiKey) => (apiKey === undefined ? {} : { 'x-goog-api-key': apiKey }),
  body: (conversation) => ({
    ...(conversation.system !== undefined && { systemInstruction: { parts: [{ text: conversation.system }] } }),
    contents: contents(conversation),
    generationConfig: present({
      temperature: conversation.temperature,
      maxOutputTokens: conversation.maxTokens,
      responseMimeType: conversation.json && 'application/json',
      responseJsonSchema: conversation.json?.schema,
    }),
    ...(conversation.tools.length > 0 && { tools: [{ functionDeclarations: conversation.tools }] }),
  }),
  reply: (answer) => {
    const { candidates, promptFeedback, usageMetadata: usage } = answerSchema.parse(answer)
    const parts = candidates[0]?.content?.parts ?? []
    const reason = finishReason(candidates[0]?.finishReason ?? promptFeedback?.blockReason)
    const isBlocked = promptFeedback?.blockReason !== undefined || BLOCKED.includes(reason)
    const calls = parts.flatMap(({ functionCall }) => functionCall ?? [])
    return {
      text: parts.map(({ text = '' }) => text).join(''),
      finishReason: calls.length > 0 ? 'tool_calls' : finishReason(reason),
      usage: { inputTokens: usage?.promptTokenCount ?? 0, outputTokens: usage?.candidatesTokenCount ?? 0 },
      toolCalls: calls.map(({ id, name, args }, i) => ({
        id: id ?? `call_${i}`,
        name,
        arguments: fromJson(args ?? {}),
      })),
      ...(isBlocked && { refusal: reason }),
      message: { role: 'model', parts },
    }
  },
}

function contents({ prompt, image, turns }: Conversation): object[] {
  const inline = image ? [{ inlineData: { mimeType: image.mediaType, data: image.base64 } }] : []
  return [
    { role: 'user', parts: [...inline, { text: prompt }] },
    ...turns.flatMap(({ reply, results }) => [
      Object(reply.message),
      {
        role: 'user',
        parts: results.map(({ call, content }) => ({
          functionResponse: { name: call.name, response: { result: content } },
        })),
      },
    ]),
  ]
}
