import * as z from 'zod'
import { NodeError } from '../../errors.ts'
import { encodeJson, fromJson, parseJson } from '../../hcl/json.ts'
import { isMap, newMap, type Value, type ValueMap } from '../../hcl/values.ts'
import type { NodeContext, NodeResult } from '../../registry.ts'
import { decodeBody, statusError } from '../answers.ts'
import { headerTexts } from '../http.ts'
import { items, map, optionalText, text } from '../settings.ts'
import { anthropic } from './anthropic.ts'
import { gemini } from './gemini.ts'
import { ollama } from './ollama.ts'
import { openai, openaiCompatible } from './openai.ts'
import type { Conversation, Provider, Reply, Tool, ToolCall, Turn } from './provider.ts'

const PROVIDERS: Readonly<Record<string, Provider>> = {
  openai,
  anthropic,
  gemini,
  ollama,
  'openai-compatible': openaiCompatible,
}

/** Asks a model, makes the calls it wants, until it answers. Contract: runbook.md 6.5. */
export async function complete(context: NodeContext): Promise<NodeResult> {
  const { config } = context
  const name = text(config, 'provider')
  const provider = PROVIDERS[name] ?? openai
  const ask = sender(context, name, provider)
  const opening = conversation(context, provider)
  const usage = { inputTokens: 0, outputTokens: 0 }
  const turns: Turn[] = []
  for (let calls = 0; ; calls++) {
    const { reply, raw } = await ask({ ...opening, turns })
    usage.inputTokens += reply.usage.inputTokens
    usage.outputTokens += reply.usage.outputTokens
    if (reply.refusal !== undefined) throw new NodeError('ai_refused', `${name} declined: ${reply.refusal}`)
    const urls = reply.toolCalls.map((call) => ({ call, tool: ownTool(config, call) }))
    if (urls.length === 0 || urls.some(({ tool }) => !tool)) {
      return { output: output(config, name, opening.model, reply, usage, raw) }
    }
    if (calls >= Number(config.maxToolIterations)) {
      throw new NodeError('ai_tool_limit', `the model still calls tools after ${calls} rounds`)
    }
    const results = await Promise.all(
      urls.map(async ({ call, tool }) => ({ call, content: await callTool(context, tool ?? newMap(), call) })),
    )
    turns.push({ reply, results })
  }
}

function sender(context: NodeContext, name: string, provider: Provider) {
  const { config, services } = context
  // the key of one vendor is never sent to servers that only copy its interface
  const apiKey = optionalText(config, 'apiKey') ?? services.apiKeys?.[name]
  if (apiKey === undefined && provider.baseUrl !== undefined) {
    throw new NodeError('config_invalid', `no API key for ${name}: give "apiKey" or ${name.toUpperCase()}_API_KEY`)
  }
  const ownUrl = name === 'ollama' ? text(config, 'ollamaUrl') : provider.baseUrl
  const base = optionalText(config, 'baseUrl') ?? ownUrl
  if (base === undefined) throw new NodeError('config_invalid', `"baseUrl" is required for ${name}`)
  return async (request: Conversation): Promise<{ reply: Reply; raw: Value }> => {
    const response = await context.http(base.replace(/\/+$/, '') + provider.path(request), {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...provider.headers(apiKey) },
      body: JSON.stringify(provider.body(request)),
    })
    const { status } = response
    if (status === 401 || status === 403) throw statusError(response, 'auth_failed')
    if (status < 200 || status > 299) throw statusError(response)
    const raw = decodeBody(response, 'json')
    try {
      return { reply: provider.reply(raw), raw }
    } catch (error) {
      if (!(error instanceof z.ZodError)) throw error
      throw new NodeError('data_invalid', `${name} answers in an unknown form: ${z.prettifyError(error)}`)
    }
  }
}

function conversation(context: NodeContext, provider: Provider): Conversation {
  const { config } = context
  const model = optionalText(config, 'model') ?? provider.defaultModel
  if (model === undefined) throw new NodeError('config_invalid', '"model" is required for this provider')
  const file = attachment(context)
  const wantsJson = config.responseFormat === 'json' || config.schema !== undefined
  return {
    model,
    system: optionalText(config, 'systemPrompt'),
    prompt: [text(config, 'prompt'), ...(file.text === undefined ? [] : [file.text])].join('\n\n'),
    image: file.image,
    turns: [],
    tools: items(config, 'tools').filter(isMap).map(toTool),
    temperature: typeof config.temperature === 'number' ? config.temperature : undefined,
    maxTokens: Number(config.maxTokens),
    json: wantsJson ? { schema: config.schema === undefined ? undefined : map(config, 'schema') } : undefined,
  }
}

const IMAGES: readonly (readonly [string, string])[] = [
  ['image/png', '89504e47'],
  ['image/jpeg', 'ffd8ff'],
  ['image/gif', '47494638'],
  ['image/webp', '52494646'],
]

/** The file beside the prompt: an image, known by its first bytes, or text. */
function attachment(context: NodeContext): { text?: string; image?: NonNullable<Conversation['image']> } {
  const path = optionalText(context.config, 'file')
  if (path === undefined) return {}
  const bytes = context.readFile(path)
  const image = IMAGES.find(([, magic]) => bytes.toString('hex', 0, magic.length / 2) === magic)
  if (image) return { image: { mediaType: image[0], base64: bytes.toString('base64') } }
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
  } catch {
    throw new NodeError('config_invalid', `${path} is neither text nor a known image`)
  }
}

const toTool = (tool: ValueMap): Tool => ({
  name: text(tool, 'name'),
  description: text(tool, 'description'),
  parameters: tool.parameters === undefined ? fromObject({ type: 'object', properties: {} }) : map(tool, 'parameters'),
})

const fromObject = (data: object): ValueMap => {
  const value = fromJson(data)
  return isMap(value) ? value : newMap()
}

/** The declared tool of a call, when this node makes the call itself. */
const ownTool = (config: ValueMap, { name }: ToolCall): ValueMap | undefined =>
  items(config, 'tools')
    .filter(isMap)
    .find((tool) => tool.name === name && tool.url !== undefined)

/** An answer of any status goes back to the model, which can react to it. */
async function callTool(context: NodeContext, tool: ValueMap, call: ToolCall): Promise<string> {
  const method = optionalText(tool, 'method') ?? 'POST'
  const response = await context.http(text(tool, 'url'), {
    method,
    headers: { 'content-type': 'application/json', ...headerTexts(map(tool, 'headers')) },
    ...(method !== 'GET' && { body: encodeJson(call.arguments) }),
  })
  const answer = response.body.toString()
  return response.status < 300 ? answer : `HTTP ${response.status}: ${answer}`
}

function output(
  config: ValueMap,
  provider: string,
  model: string,
  reply: Reply,
  usage: Reply['usage'],
  raw: Value,
): Value {
  const { text: response, finishReason, toolCalls } = reply
  const wantsJson = config.responseFormat === 'json' || config.schema !== undefined
  const json = wantsJson && toolCalls.length === 0 ? { json: checkedJson(config, response) } : {}
  return fromJson({ response, ...json, provider, model, finishReason, usage, toolCalls, raw })
}

/** @throws NodeError data_invalid */
function checkedJson(config: ValueMap, response: string): Value {
  const fenced = /^\s*```(?:json)?\s*\n([\s\S]*?)\n\s*```\s*$/.exec(response)
  let value: Value
  try {
    value = parseJson(fenced?.[1] ?? response)
  } catch {
    throw new NodeError('data_invalid', 'the model did not answer with JSON')
  }
  if (config.schema === undefined) return value
  const { success, error } = schemaOf(config).safeParse(value)
  if (success) return value
  throw new NodeError('data_invalid', `the answer does not match the schema: ${z.prettifyError(error)}`)
}

function schemaOf(config: ValueMap): z.ZodType {
  try {
    return z.fromJSONSchema(JSON.parse(encodeJson(map(config, 'schema'))))
  } catch {
    throw new NodeError('config_invalid', '"schema" is no JSON Schema')
  }
}
