import { claudeThinking } from '../claude-thinking.ts'
import {
  JSON_LINE,
  UnsayableError,
  type CacheMark,
  type ChatRequest,
  type Drop,
  type Part,
  type Tool,
} from '../form.ts'
import { claudeCallId } from '../ids.ts'
import { optional, type Json } from '../json.ts'
import { RawJson } from '../raw-json.ts'
import { isSaid, isSigned, type Target } from '../target.ts'

const ANY_OBJECT = { type: 'object', properties: {} }
const CLAUDE = /(?:^|[./])anthropic\.|claude/

/** A Converse request. Contract: gateway.md 5.3. @throws UnsayableError */
export function writeConverseRequest(request: ChatRequest, target: Target, drop: Drop): Json {
  for (const [field, value] of Object.entries({
    user: request.user,
    seed: request.seed,
    frequency_penalty: request.frequencyPenalty,
    presence_penalty: request.presencePenalty,
    top_k: request.topK,
    parallel_tool_calls: request.singleCall || undefined,
  })) {
    if (value !== undefined) drop(field)
  }
  const { format } = request
  const sampled = { temperature: request.temperature, topP: request.topP }
  const { thinking, effort } = thinkingOf(request, target, drop)
  const isSampled = target.sampling && !thinking // Claude takes none while it thinks
  if (!isSampled) {
    if (sampled.temperature !== undefined) drop('temperature')
    if (sampled.topP !== undefined) drop('top_p')
  }
  const inference = optional({
    // A budget of thinking is measured against the cap, which must be said then.
    maxTokens: request.maxTokens ?? (thinking && target.defaultMaxTokens),
    ...(isSampled && sampled),
    stopSequences: request.stop.length > 0 ? request.stop : undefined,
  })
  const schema = format?.type === 'schema' ? format : undefined
  const output = optional({
    effort,
    textFormat: schema && {
      type: 'json_schema',
      structure: { jsonSchema: { name: schema.name, schema: JSON.stringify(schema.schema) } },
    },
  })
  const system = [
    ...request.system.filter(isSaid).flatMap(({ text, cache }) => [{ text }, ...cachePoint(cache)]),
    ...(format?.type === 'json' ? [{ text: JSON_LINE }] : []),
  ]
  const nameOf = documentNames()
  return optional({
    system: system.length > 0 ? system : undefined,
    messages: request.turns.map(({ role, parts }) => ({
      role,
      content: parts.filter(isSaid).flatMap((part) => blocksOf(part, nameOf)),
    })),
    toolConfig: toolConfigOf(request),
    inferenceConfig: Object.keys(inference).length > 0 ? inference : undefined,
    additionalModelRequestFields: thinking && { thinking },
    outputConfig: Object.keys(output).length > 0 ? output : undefined,
  })
}

function thinkingOf(request: ChatRequest, target: Target, drop: Drop): { thinking?: Json; effort?: string } {
  const model = CLAUDE.test(target.model) ? target : { ...target, reasoning: 'none' as const }
  return claudeThinking(request, model, request.maxTokens ?? target.defaultMaxTokens, drop)
}

/** Calls in the history want their tools declared, whether or not the client still names them. */
function toolConfigOf({ tools, choice, turns }: ChatRequest): Json | undefined {
  const called = turns.flatMap(({ parts }) => parts.flatMap((part) => (part.kind === 'call' ? [part.name] : [])))
  const declared = choice === 'none' ? [] : tools
  const missing = [...new Set(called)].filter((name) => !declared.some((tool) => tool.name === name))
  const known = missing.map(
    (name): Tool => tools.find((tool) => tool.name === name) ?? { name, parameters: ANY_OBJECT },
  )
  const all = [...declared, ...known]
  if (all.length === 0) return undefined
  return optional({
    tools: all.flatMap(({ name, description, parameters, strict, cache }) => [
      { toolSpec: optional({ name, description, inputSchema: { json: parameters }, strict }) },
      ...cachePoint(cache),
    ]),
    toolChoice: choice === undefined || choice === 'none' ? undefined : choiceOf(choice),
  })
}

function choiceOf(choice: 'auto' | 'required' | { readonly name: string }): Json {
  if (typeof choice === 'object') return { tool: choice }
  return choice === 'auto' ? { auto: {} } : { any: {} }
}

function blocksOf(part: Part, nameOf: (name: string) => string): Json[] {
  return [...blockOf(part, nameOf), ...('cache' in part ? cachePoint(part.cache) : [])]
}

function blockOf(part: Part, nameOf: (name: string) => string): Json[] {
  switch (part.kind) {
    case 'text':
      return [{ text: part.text }]
    case 'image':
      if ('url' in part.source) {
        throw new UnsayableError('unsupported_content', 'messages', 'this model takes images as data URLs only')
      }
      return [{ image: { format: part.source.mediaType.replace('image/', ''), source: { bytes: part.source.data } } }]
    case 'document':
      return [{ document: { format: 'pdf', name: nameOf(part.name), source: { bytes: part.data } } }]
    case 'audio':
      throw new UnsayableError('unsupported_content', 'messages', 'this model takes no audio')
    case 'reasoning':
      if (part.family !== 'claude' || !isSigned(part)) return []
      if (part.sealed !== undefined) return [{ reasoningContent: { redactedContent: part.sealed } }]
      return [{ reasoningContent: { reasoningText: { text: part.text, signature: part.signature } } }]
    case 'call':
      return [{ toolUse: { toolUseId: claudeCallId(part.id), name: part.name, input: new RawJson(part.arguments) } }]
    case 'result':
      return [
        {
          toolResult: {
            toolUseId: claudeCallId(part.id),
            content: part.content.filter(isSaid).flatMap((each) => blockOf(each, nameOf)),
            status: part.isError ? 'error' : 'success',
          },
        },
      ]
  }
}

/**
 * Letters, digits, spaces, hyphens and brackets, no two spaces in a row, and no two documents of one name. Source: Bedrock,
 * DocumentBlock.
 */
function documentNames(): (name: string) => string {
  const taken = new Set<string>()
  return (name) => {
    const plain =
      name
        .replace(/\.pdf$/i, '')
        .replace(/[^\w\s()[\]-]|_/g, '-')
        .replace(/\s+/g, ' ')
        .slice(0, 180) || 'document'
    let unique = plain
    for (let i = 2; taken.has(unique.toLowerCase()); i++) unique = `${plain} (${i})`
    taken.add(unique.toLowerCase())
    return unique
  }
}

const cachePoint = (cache: CacheMark | undefined): Json[] =>
  cache ? [{ cachePoint: { type: 'default', ...cache } }] : []
