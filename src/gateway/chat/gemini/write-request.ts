import { budgetOf, knownEffort } from '../effort.ts'
import {
  hasCacheMark,
  UnsayableError,
  type ChatRequest,
  type Drop,
  type Effort,
  type Part,
  type ToolChoice,
  type Turn,
} from '../form.ts'
import { optional, type Json } from '../json.ts'
import { RawJson } from '../raw-json.ts'
import type { Target } from '../target.ts'

/** What Gemini takes in place of a signature that was lost. Source: Gemini API, thought signatures. */
const NO_SIGNATURE = 'skip_thought_signature_validator'

/** A generateContent request. Contract: gateway.md 5.3. @throws UnsayableError */
export function writeGeminiRequest(request: ChatRequest, target: Target, drop: Drop): Json {
  const { system, tools, choice, format } = request
  if (request.user !== undefined) drop('user')
  if (request.singleCall) drop('parallel_tool_calls')
  if (hasCacheMark(request)) drop('cache_control')
  if (tools.some(({ strict }) => strict)) drop('tools.strict')
  const generation = optional({
    maxOutputTokens: request.maxTokens,
    temperature: request.temperature,
    topP: request.topP,
    topK: request.topK,
    stopSequences: request.stop.length > 0 ? request.stop : undefined,
    seed: request.seed,
    frequencyPenalty: request.frequencyPenalty,
    presencePenalty: request.presencePenalty,
    responseMimeType: format && 'application/json',
    responseJsonSchema: format?.type === 'schema' ? format.schema : undefined,
    thinkingConfig: thinkingOf(request, target, drop),
  })
  return optional({
    systemInstruction: system.length > 0 ? { parts: system.map(({ text }) => ({ text })) } : undefined,
    contents: request.turns.map((turn) => contentOf(turn, target)),
    tools:
      tools.length > 0
        ? [
            {
              functionDeclarations: tools.map(({ name, description, parameters }) =>
                optional({ name, description, parametersJsonSchema: parameters }),
              ),
            },
          ]
        : undefined,
    toolConfig: choice !== undefined && tools.length > 0 ? { functionCallingConfig: modeOf(choice) } : undefined,
    generationConfig: Object.keys(generation).length > 0 ? generation : undefined,
  })
}

function modeOf(choice: ToolChoice): Json {
  if (typeof choice === 'object') return { mode: 'ANY', allowedFunctionNames: [choice.name] }
  return { mode: { auto: 'AUTO', none: 'NONE', required: 'ANY' }[choice] }
}

/** Levels of thinking that Gemini has; it cannot be told not to think by one. */
const LEVELS: readonly Effort[] = ['minimal', 'low', 'medium', 'high']

function thinkingOf(request: ChatRequest, { reasoning, efforts }: Target, drop: Drop): Json | undefined {
  if (request.effort === undefined) return undefined
  const effort = knownEffort(request.effort, efforts ?? (reasoning === 'level' ? LEVELS : undefined))
  if (reasoning === 'level' && effort !== undefined) return { thinkingLevel: effort, includeThoughts: true }
  if (reasoning === 'budget' && effort !== undefined) {
    const budget = budgetOf(effort, request.maxTokens) ?? 0
    if (budget === 0 && effort !== 'none') drop('reasoning_effort')
    return { thinkingBudget: budget, includeThoughts: budget > 0 }
  }
  if (effort !== 'none' || reasoning !== 'none') drop('reasoning_effort')
  return undefined
}

function contentOf({ role, parts }: Turn, { reasoning }: Target): Json {
  let isFirstCall = true
  const written = parts.flatMap((part): Json[] => {
    if (part.kind !== 'call') return partOf(part)
    // A model that thinks refuses the first call of a turn without the thought that led to it.
    const missing = isFirstCall && reasoning !== 'none' ? NO_SIGNATURE : undefined
    isFirstCall = false
    const { id, name, signature = missing } = part
    const args = new RawJson(part.arguments)
    return [optional({ functionCall: { id, name, args }, thoughtSignature: signature })]
  })
  return { role: role === 'assistant' ? 'model' : 'user', parts: written }
}

function partOf(part: Exclude<Part, { kind: 'call' }>): Json[] {
  switch (part.kind) {
    case 'text':
      return [{ text: part.text }]
    case 'image':
      if ('url' in part.source) {
        throw new UnsayableError('unsupported_content', 'messages', 'this model takes images as data URLs only')
      }
      return [{ inlineData: { mimeType: part.source.mediaType, data: part.source.data } }]
    case 'document':
      return [{ inlineData: { mimeType: 'application/pdf', data: part.data } }]
    case 'audio':
      return [{ inlineData: { mimeType: `audio/${part.format}`, data: part.data } }]
    case 'reasoning':
      if (part.family !== 'gemini') return []
      return [optional({ text: part.text, thought: true, thoughtSignature: part.signature })]
    case 'result': {
      const result = part.content.flatMap((each) => (each.kind === 'text' ? [each.text] : [])).join('\n')
      const shown = part.content.flatMap((each) => (each.kind === 'text' ? [] : partOf(each)))
      const response = part.isError ? { error: result } : { result }
      return [{ functionResponse: { id: part.id, name: part.name, response } }, ...shown]
    }
  }
}
