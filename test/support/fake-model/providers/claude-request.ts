import { createHmac } from 'node:crypto'
import { looseObject, type Prompt } from '../speech.ts'
import { invalid, isJson, list, object, string, unknownName, type Json, words } from '../wire.ts'

/** Proves that a thought came from Claude; Anthropic, Bedrock and Vertex take each other's. */
export const signThought = (thought: string): string =>
  createHmac('sha256', 'claude thinks').update(thought).digest('base64')

const FIELDS = words(`
  model messages max_tokens stream system tools tool_choice stop_sequences thinking output_config metadata
  service_tier cache_control container diagnostics inference_geo speed mcp_servers context_management
  user_profile_id workspace_id
`)
const SAMPLING = ['temperature', 'top_p', 'top_k']
const BLOCKS = words(`
  text image document search_result thinking redacted_thinking tool_use tool_result server_tool_use
  web_search_tool_result web_fetch_tool_result code_execution_tool_result
`)

export interface ClaudeRules {
  /** The newest version of the interface has no sampling. */
  readonly hasSampling: boolean
  /** Vertex names the model in the address and the version in the body. */
  readonly isVertex: boolean
  /** Counting needs no cap. */
  readonly isCount: boolean
}

const forbidden = (name: string): Error => invalid(`${name}: Extra inputs are not permitted`)
const missing = (name: string): Error => invalid(`${name}: Field required`)

/** Reads and judges a messages request. @throws Refusal */
export function readMessages(body: unknown, model: string | undefined, rules: ClaudeRules): Prompt {
  if (!isJson(body)) throw invalid('The request body is not valid JSON')
  checkFields(body, model, rules)
  const messages = list(body['messages']).map(({ role, content }) => ({
    role: string(role),
    blocks: blocksOf(content),
  }))
  const thinks = checkThinking(body)
  checkMessages(messages)
  checkTools(body, thinks)
  if (thinks) checkThoughts(messages, object(body['thinking'])['type'] === 'enabled')
  const last = messages.at(-1)?.blocks ?? []
  const results = last.filter(({ type }) => type === 'tool_result')
  const { type: choice, name } = object(body['tool_choice'])
  const format = object(object(body['output_config'])['format'])
  const said = messages.flatMap(({ blocks }) => blocks.map(textOf))
  return {
    model: model ?? string(body['model']),
    stream: body['stream'] === true,
    text: [...blocksOf(body['system']).map(textOf), ...said].join('\n'),
    last: (messages.findLast(({ role }) => role === 'user')?.blocks ?? [])
      .filter(({ type }) => type === 'text')
      .map(textOf)
      .join(''),
    result: results.length > 0 ? results.map(textOf).join('; ') : undefined,
    tools: list(body['tools']).map((tool) => ({ name: string(tool['name']), schema: tool['input_schema'] })),
    forced: choice === 'tool' ? string(name) : choice === 'any',
    format: format['type'] === 'json_schema' ? { schema: format['schema'] } : 'text',
    maxTokens: Number(body['max_tokens'] ?? Infinity),
    thinks,
  }
}

const blocksOf = (content: unknown): readonly Json[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : list(content)

function textOf(block: Json): string {
  const { text, content, input } = block
  if (typeof text === 'string') return text
  if (content !== undefined) return blocksOf(content).map(textOf).join('')
  return input === undefined ? '' : JSON.stringify(input)
}

function checkFields(body: Json, model: string | undefined, { hasSampling, isVertex, isCount }: ClaudeRules): void {
  const known = [
    ...FIELDS,
    ...(hasSampling ? SAMPLING : []),
    ...(isVertex ? ['anthropic_version', 'anthropic_beta'] : []),
  ]
  const unknown = unknownName(body, isVertex ? known.filter((name) => name !== 'model') : known)
  if (unknown !== undefined) throw forbidden(unknown)
  if (isVertex && body['anthropic_version'] !== 'vertex-2023-10-16') throw missing('anthropic_version')
  if (model === undefined && string(body['model']) === '') throw missing('model')
  if (!isCount && body['max_tokens'] === undefined) throw missing('max_tokens')
  if (!isCount && !(Number.isInteger(body['max_tokens']) && Number(body['max_tokens']) >= 0)) {
    throw invalid('max_tokens: Input should be a valid integer')
  }
  if (!Array.isArray(body['messages'])) throw missing('messages')
  if (body['messages'].length === 0) throw invalid('messages: at least one message is required')
  const { temperature, top_p: topP } = body
  if (Number(temperature ?? 0) > 1) throw invalid('temperature: range: 0..1')
  if (temperature !== undefined && topP !== undefined) {
    throw invalid('`temperature` and `top_p` cannot both be specified for this model. Please use only one.')
  }
}

/** Whether it thinks. */
function checkThinking(body: Json): boolean {
  const { type, budget_tokens: budget } = object(body['thinking'])
  if (type !== 'enabled' && type !== 'adaptive') return false
  if (type === 'enabled' && Number(budget ?? 0) < 1024) {
    throw invalid('thinking.enabled.budget_tokens: Input should be greater than or equal to 1024')
  }
  if (type === 'enabled' && Number(budget) >= Number(body['max_tokens'])) {
    throw invalid('`max_tokens` must be greater than `thinking.budget_tokens`.')
  }
  if (body['temperature'] !== undefined && body['temperature'] !== 1) {
    throw invalid('`temperature` may only be set to 1 when thinking is enabled.')
  }
  return true
}

interface Message {
  readonly role: string
  readonly blocks: readonly Json[]
}

function checkMessages(messages: readonly Message[]): void {
  if (messages[0]?.role === 'assistant') throw invalid('messages: first message must use the "user" role')
  for (const [i, { role, blocks }] of messages.entries()) {
    if (!['user', 'assistant', 'system'].includes(role)) {
      throw invalid(`messages.${i}.role: Input should be 'user' or 'assistant'`)
    }
    if (blocks.length === 0) throw invalid(`messages.${i}: all messages must have non-empty content`)
    for (const [j, block] of blocks.entries()) checkBlock(block, `messages.${i}.content.${j}`)
    checkResults(messages[i - 1], blocks, i)
  }
  checkResults(messages.at(-1), [], messages.length)
  const end = messages.at(-1)
  if (end?.role === 'assistant' && /\s$/.test(textOf(end.blocks.at(-1) ?? {}))) {
    throw invalid('messages: final assistant content cannot end with trailing whitespace')
  }
}

function checkBlock(block: Json, at: string): void {
  const type = string(block['type'])
  if (!BLOCKS.includes(type))
    throw invalid(`${at}: Input tag '${type}' found using 'type' does not match any of the expected tags`)
  if (type === 'text' && string(block['text']) === '')
    throw invalid(`${at}.text: text content blocks must be non-empty`)
  if (type === 'tool_use' && (!/^[\w-]+$/.test(string(block['id'])) || !isJson(block['input']))) {
    throw invalid(`${at}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`)
  }
  const source = object(block['source'])
  if (
    (type === 'image' || type === 'document') &&
    !['base64', 'url', 'text', 'file', 'content'].includes(string(source['type']))
  ) {
    throw invalid(`${at}.${type}.source: Field required`)
  }
}

/** Results stand first in the message right after their calls, and nowhere else. */
function checkResults(before: Message | undefined, blocks: readonly Json[], i: number): void {
  const asked =
    before?.role === 'assistant' ? before.blocks.filter(({ type }) => type === 'tool_use').map(({ id }) => id) : []
  const results = blocks.filter(({ type }) => type === 'tool_result').map(({ tool_use_id: id }) => id)
  const leading = blocks.slice(0, results.length).every(({ type }) => type === 'tool_result')
  const open = asked.filter((id) => !results.includes(id))
  if (open.length > 0 || !leading) {
    throw invalid(
      `messages.${i - 1}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
    )
  }
  const unasked = results.find((id) => !asked.includes(id))
  if (unasked === undefined) return
  throw invalid(
    `messages.${i}.content.0: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${string(unasked)}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
  )
}

function checkTools(body: Json, thinks: boolean): void {
  const tools = list(body['tools'])
  for (const [i, { name, input_schema: schema, type }] of tools.entries()) {
    if (type !== undefined && type !== 'custom' && type !== null) continue
    if (!/^[\w-]{1,128}$/.test(string(name))) throw invalid(`tools.${i}.custom.name: String should match pattern`)
    if (object(schema)['type'] !== 'object') throw invalid(`tools.${i}.custom.input_schema.type: Field required`)
  }
  const choice = object(body['tool_choice'])['type']
  if (choice !== undefined && choice !== 'none' && tools.length === 0) {
    throw invalid('tool_choice: tool_choice may only be specified while providing tools.')
  }
  if (thinks && (choice === 'any' || choice === 'tool')) {
    throw invalid('Thinking may not be enabled when tool_choice forces tool use.')
  }
  const { type, schema } = object(object(body['output_config'])['format'])
  const loose = type === 'json_schema' ? looseObject(schema) : undefined
  if (loose !== undefined) {
    throw invalid(
      `output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false (${loose})`,
    )
  }
}

/** While a tool loop runs, what was thought before the call must come back unchanged. */
function checkThoughts(messages: readonly Message[], isManual: boolean): void {
  for (const [i, { role, blocks }] of messages.entries()) {
    if (role !== 'assistant') continue
    const [first] = blocks
    const inLoop = i === messages.findLastIndex((message) => message.role === 'assistant')
    const calls = blocks.some(({ type }) => type === 'tool_use')
    const startsThinking = first?.['type'] === 'thinking' || first?.['type'] === 'redacted_thinking'
    if (inLoop && (calls || isManual) && !startsThinking) {
      throw invalid(
        `messages.${i}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${string(first?.['type'])}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceding the lastmost set of \`tool_use\` and \`tool_result\` blocks).`,
      )
    }
    for (const [j, { type, thinking, signature }] of blocks.entries()) {
      if (type === 'thinking' && signature !== signThought(string(thinking))) {
        throw invalid(`messages.${i}.content.${j}: Invalid \`signature\` in \`thinking\` block`)
      }
    }
  }
}
