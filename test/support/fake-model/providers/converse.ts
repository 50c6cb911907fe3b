import { looseObject, schemaText, type Prompt, type Speech } from '../speech.ts'
import {
  invalid,
  isJson,
  jsonReply,
  list,
  object,
  string,
  unknownName,
  words,
  type Frame,
  type Json,
  type Reply,
  type Usage,
} from '../wire.ts'
import { eventMessage } from './aws.ts'
import { signThought } from './claude-request.ts'

const FIELDS = words(`
  messages system inferenceConfig toolConfig guardrailConfig additionalModelRequestFields promptVariables
  additionalModelResponseFieldPaths requestMetadata performanceConfig outputConfig serviceTier
`)
const BLOCKS = words(`
  text image document video toolUse toolResult guardContent cachePoint reasoningContent citationsContent
  searchResult audio
`)

interface Message {
  readonly role: string
  readonly blocks: readonly Json[]
}

/** Reads and judges a converse request. @throws Refusal */
export function readConverse(body: unknown, model: string, stream: boolean): Prompt {
  if (!isJson(body)) throw invalid('Malformed input request, please reformat your input and try again.')
  checkNames(body, FIELDS, '#')
  checkNames(
    object(body['inferenceConfig']),
    ['maxTokens', 'temperature', 'topP', 'stopSequences'],
    '#/inferenceConfig',
  )
  const messages = list(body['messages']).map(({ role, content }) => ({ role: string(role), blocks: list(content) }))
  const { tools, forced } = checkTools(body, messages)
  checkMessages(messages)
  const thinking = object(object(body['additionalModelRequestFields'])['thinking'])
  const thinks = thinking['type'] === 'enabled' || thinking['type'] === 'adaptive'
  if (thinks && forced !== false) throw invalid('Thinking may not be enabled when tool_choice forces tool use.')
  if (thinks) checkThoughts(messages)
  const last = messages.at(-1)?.blocks ?? []
  const results = last.filter(({ toolResult }) => toolResult !== undefined)
  return {
    model,
    stream,
    text: [...list(body['system']), ...messages.flatMap(({ blocks }) => blocks)].map(textOf).join('\n'),
    last: (messages.findLast(({ role }) => role === 'user')?.blocks ?? []).map(({ text }) => string(text)).join(''),
    result: results.length > 0 ? results.map(textOf).join('; ') : undefined,
    tools,
    forced,
    format: formatOf(object(object(body['outputConfig'])['textFormat'])),
    maxTokens: Number(object(body['inferenceConfig'])['maxTokens'] ?? Infinity),
    thinks,
  }
}

function checkNames(value: Json, known: readonly string[], at: string): void {
  const name = unknownName(value, known)
  if (name !== undefined)
    throw invalid(
      `Malformed input request: ${at}: extraneous key [${name}] is not permitted, please reformat your input and try again.`,
    )
}

function formatOf({ type, structure }: Json): Prompt['format'] {
  if (type !== 'json_schema') return 'text'
  const schema = object(object(structure)['jsonSchema'])['schema']
  if (typeof schema !== 'string') throw invalid('outputConfig.textFormat.structure.jsonSchema.schema must be a string')
  if (looseObject(schemaText(schema)) !== undefined) {
    throw invalid("outputConfig.textFormat: For 'object' type, 'additionalProperties' must be explicitly set to false")
  }
  return { schema: schemaText(schema) }
}

function textOf(block: Json): string {
  if (typeof block['text'] === 'string') return block['text']
  const { content } = object(block['toolResult'])
  if (content !== undefined)
    return list(content)
      .map((each) => string(each['text']) || JSON.stringify(each['json'] ?? ''))
      .join('')
  return block['toolUse'] === undefined ? '' : JSON.stringify(object(block['toolUse'])['input'])
}

function checkTools(body: Json, messages: readonly Message[]): Pick<Prompt, 'tools' | 'forced'> {
  const config = object(body['toolConfig'])
  const used = messages.some(({ blocks }) => blocks.some(({ toolUse, toolResult }) => toolUse ?? toolResult))
  if (used && body['toolConfig'] === undefined) {
    throw invalid('The toolConfig field must be defined when using toolUse and toolResult content blocks.')
  }
  const specs = list(config['tools'])
    .filter(({ toolSpec }) => isJson(toolSpec))
    .map(({ toolSpec }) => object(toolSpec))
  if (body['toolConfig'] !== undefined && specs.length === 0)
    throw invalid('toolConfig.tools: Member must have length greater than or equal to 1')
  for (const spec of specs) {
    checkNames(spec, ['name', 'description', 'inputSchema', 'strict'], '#/toolConfig/tools/0/toolSpec')
    if (!/^[\w-]{1,64}$/.test(string(spec['name'])) || spec['description'] === '')
      throw invalid('toolConfig.tools.0.member.toolSpec is invalid')
    if (object(object(spec['inputSchema'])['json'])['type'] !== 'object') {
      throw invalid(
        'The value at toolConfig.tools.0.toolSpec.inputSchema.json.type must be one of the following: object.',
      )
    }
  }
  const { any, tool } = object(config['toolChoice'])
  return {
    tools: specs.map(({ name, inputSchema }) => ({ name: string(name), schema: object(inputSchema)['json'] })),
    forced: isJson(tool) ? string(tool['name']) : any !== undefined,
  }
}

function checkMessages(messages: readonly Message[]): void {
  if (messages.length === 0) throw invalid('The messages field is empty.')
  if (messages[0]?.role !== 'user')
    throw invalid(
      'A conversation must start with a user message. Try again with a conversation that starts with a user message.',
    )
  for (const [i, { role, blocks }] of messages.entries()) {
    const before = messages[i - 1]
    if (before?.role === role)
      throw invalid(
        'A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.',
      )
    if (blocks.length === 0) throw invalid(`The content field in the Message object at messages.${i} is empty.`)
    for (const block of blocks) {
      checkNames(block, BLOCKS, `#/messages/${i}/content`)
      if (Object.keys(block).length !== 1) throw invalid('Exactly one member of the union must be set.')
      if (block['text'] === '')
        throw invalid(`The text field in the ContentBlock object at messages.${i}.content.0 is blank.`)
    }
    const asked = (before?.blocks ?? []).flatMap(({ toolUse }) => (isJson(toolUse) ? [toolUse['toolUseId']] : []))
    const given = blocks.flatMap(({ toolResult }) => (isJson(toolResult) ? [toolResult['toolUseId']] : []))
    if (asked.length !== given.length || asked.some((id) => !given.includes(id))) {
      throw invalid(`Expected toolResult blocks at messages.${i}.content for the following Ids: ${asked.join(', ')}`)
    }
  }
  if (messages.at(-1)?.blocks.some(({ toolUse }) => toolUse !== undefined))
    throw invalid('Expected toolResult blocks after the last message.')
}

function checkThoughts(messages: readonly Message[]): void {
  const at = messages.findLastIndex(({ role }) => role === 'assistant')
  for (const [i, { role, blocks }] of messages.entries()) {
    if (role !== 'assistant') continue
    const calls = blocks.some(({ toolUse }) => toolUse !== undefined)
    if (i === at && calls && blocks[0]?.['reasoningContent'] === undefined) {
      throw invalid(
        'The model returned the following errors: Expected `thinking` or `redacted_thinking`, but found `tool_use`.',
      )
    }
    for (const { reasoningContent } of blocks) {
      const thought = object(object(reasoningContent)['reasoningText'])
      if (thought['text'] !== undefined && thought['signature'] !== signThought(string(thought['text']))) {
        throw invalid('The model returned the following errors: Invalid `signature` in `thinking` block')
      }
    }
  }
}

const STOPS: Readonly<Record<Speech['stop'], string>> = { stop: 'end_turn', length: 'max_tokens', calls: 'tool_use' }

const usageOf = ({ input, cacheRead, cacheWrite, cacheWrite1h, output }: Usage): Json => ({
  inputTokens: input - cacheRead - cacheWrite - cacheWrite1h,
  outputTokens: output,
  totalTokens: input + output,
  ...(cacheRead + cacheWrite + cacheWrite1h > 0 && {
    cacheReadInputTokens: cacheRead,
    cacheWriteInputTokens: cacheWrite + cacheWrite1h,
    cacheDetails: [
      { ttl: '5m', inputTokens: cacheWrite },
      { ttl: '1h', inputTokens: cacheWrite1h },
    ],
  }),
})

const idOf = (id: string | undefined, n: number): string => id ?? `tooluse_fake${n}`

/** A whole answer, or messages of an event stream. */
export function converseReply(speech: Speech, { stream }: Prompt): Reply {
  const { usage, isCounted, finish, reasoning, pieces, calls } = speech
  const stopReason = finish ?? STOPS[speech.stop]
  const counts = isCounted ? { usage: usageOf(usage) } : {}
  if (!stream) {
    const content = [
      ...(reasoning === ''
        ? []
        : [{ reasoningContent: { reasoningText: { text: reasoning, signature: signThought(reasoning) } } }]),
      ...(pieces.length === 0 ? [] : [{ text: pieces.join('') }]),
      ...calls.map(({ id, name, json }, n) => ({ toolUse: { toolUseId: idOf(id, n), name, input: JSON.parse(json) } })),
    ]
    const body = {
      output: { message: { role: 'assistant', content } },
      stopReason,
      ...counts,
      metrics: { latencyMs: 7 },
    }
    return jsonReply(body, isCounted ? usage : undefined)
  }
  const blocks = [
    ...(reasoning === ''
      ? []
      : [
          {
            start: undefined,
            deltas: [
              { reasoningContent: { text: reasoning } },
              { reasoningContent: { signature: signThought(reasoning) } },
            ],
          },
        ]),
    ...(pieces.length === 0 ? [] : [{ start: undefined, deltas: pieces.map((text) => ({ text })) }]),
    ...calls.map(({ id, name, json }, n) => ({
      start: { toolUse: { toolUseId: idOf(id, n), name } },
      deltas: [json.slice(0, 3), json.slice(3)].map((input) => ({ toolUse: { input } })),
    })),
  ]
  return {
    status: 200,
    contentType: 'application/vnd.amazon.eventstream',
    frames: [
      event('messageStart', { role: 'assistant' }),
      ...blocks.flatMap(({ start, deltas }, contentBlockIndex) => [
        ...(start ? [event('contentBlockStart', { start, contentBlockIndex })] : []),
        ...deltas.map((delta) => event('contentBlockDelta', { delta, contentBlockIndex }, { isContent: true })),
        event('contentBlockStop', { contentBlockIndex }),
      ]),
      event('messageStop', { stopReason }),
      ...(isCounted ? [event('metadata', { ...counts, metrics: { latencyMs: 7 } }, { usage })] : []),
    ],
  }
}

/** Padded, as they are, against guesses from lengths. */
const event = (type: string, data: Json, more: Partial<Frame> = {}): Frame =>
  eventMessage(
    { ':event-type': type, ':content-type': 'application/json', ':message-type': 'event' },
    { ...data, p: 'abcdefghijk'.slice(0, 1 + (type.length % 10)) },
    more,
  )
