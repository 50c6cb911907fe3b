import { createHmac } from 'node:crypto'
import type { Prompt } from '../speech.ts'
import { invalid, isJson, list, object, string, unknownName, type Json, words } from '../wire.ts'

/** Proves the thought behind a call. */
export const signCall = (name: string, args: unknown): string =>
  createHmac('sha256', 'gemini thinks')
    .update(`${name}${JSON.stringify(args)}`)
    .digest('base64')

/** What may stand in its place. */
const PLACEHOLDERS = ['skip_thought_signature_validator', 'context_engineering_is_the_way_to_go']

const FIELDS = words(`
  contents systemInstruction system_instruction tools toolConfig tool_config safetySettings safety_settings
  generationConfig generation_config cachedContent cached_content labels model
`)
const GENERATION = words(`
  maxOutputTokens temperature topP topK candidateCount stopSequences seed presencePenalty frequencyPenalty
  responseMimeType responseSchema responseJsonSchema thinkingConfig logprobs responseLogprobs
  responseModalities mediaResolution speechConfig enableEnhancedCivicAnswers
`)
const PART = words(`
  text inlineData inline_data fileData functionCall functionResponse executableCode codeExecutionResult
  thought thoughtSignature videoMetadata
`)

const unknown = (name: string, at: string): Error =>
  invalid(`Invalid JSON payload received. Unknown name "${name}"${at === '' ? '' : ` at '${at}'`}: Cannot find field.`)

function checkNames(value: Json, known: readonly string[], at: string): void {
  const name = unknownName(value, known)
  if (name !== undefined) throw unknown(name, at)
}

/** Reads and judges a generateContent request. @throws Refusal */
export function readGenerate(body: unknown, model: string, stream: boolean): Prompt {
  if (!isJson(body)) throw invalid('Invalid JSON payload received.')
  checkNames(body, FIELDS, '')
  const generation = object(body['generationConfig'])
  checkNames(generation, GENERATION, 'generation_config')
  const contents = list(body['contents']).map(({ role, parts }) => ({ role: string(role), parts: list(parts) }))
  if (contents.length === 0) throw invalid('* GenerateContentRequest.contents: contents is not specified')
  checkContents(contents)
  const thinks = /^gemini-(3|[4-9])/.test(model) || object(generation['thinkingConfig'])['includeThoughts'] === true
  if (/^gemini-(3|[4-9])/.test(model)) checkSignatures(contents)
  const tools = list(body['tools']).flatMap((tool) => list(tool['functionDeclarations']))
  const config = object(object(body['toolConfig'])['functionCallingConfig'])
  checkTools(tools, config)
  const names = Array.isArray(config['allowedFunctionNames']) ? config['allowedFunctionNames'] : []
  const results = contents.at(-1)?.parts.filter((part) => part['functionResponse'] !== undefined) ?? []
  const schema = generation['responseJsonSchema'] ?? generation['responseSchema']
  return {
    model,
    stream,
    text: [...list(object(body['systemInstruction'])['parts']), ...contents.flatMap(({ parts }) => parts)]
      .map(textOf)
      .join('\n'),
    last: (contents.findLast(({ role }) => role !== 'model')?.parts ?? []).map((part) => string(part['text'])).join(''),
    result: results.length > 0 ? results.map(textOf).join('; ') : undefined,
    tools: tools.map(({ name, parametersJsonSchema, parameters }) => ({
      name: string(name),
      schema: parametersJsonSchema ?? parameters,
    })),
    forced: config['mode'] === 'ANY' ? (names.length === 1 ? string(names[0]) : true) : false,
    format: generation['responseMimeType'] !== 'application/json' ? 'text' : schema === undefined ? 'json' : { schema },
    maxTokens: Number(generation['maxOutputTokens'] ?? Infinity),
    thinks: thinks && object(generation['thinkingConfig'])['includeThoughts'] === true,
  }
}

function textOf(part: Json): string {
  if (typeof part['text'] === 'string') return part['text']
  const { response } = object(part['functionResponse'])
  if (response !== undefined) return string(object(response)['result']) || JSON.stringify(response)
  return part['functionCall'] === undefined ? '' : JSON.stringify(part['functionCall'])
}

interface Content {
  readonly role: string
  readonly parts: readonly Json[]
}

const callsOf = ({ parts }: Content): Json[] => parts.map((part) => part['functionCall']).filter(isJson)
const responsesOf = ({ parts }: Content): Json[] => parts.map((part) => part['functionResponse']).filter(isJson)

function checkContents(contents: readonly Content[]): void {
  for (const [i, content] of contents.entries()) {
    const { role, parts } = content
    if (!['user', 'model', 'function', ''].includes(role)) throw invalid('Please use a valid role: user, model.')
    if (parts.length === 0)
      throw invalid(`* GenerateContentRequest.contents[${i}].parts: contents.parts must not be empty.`)
    for (const [j, part] of parts.entries()) checkNames(part, PART, `contents[${i}].parts[${j}]`)
    const before = contents[i - 1]
    if (callsOf(content).length > 0 && (before === undefined || before.role === 'model')) {
      throw invalid(
        'Please ensure that function call turn comes immediately after a user turn or after a function response turn.',
      )
    }
    const asked = before ? callsOf(before) : []
    const responses = responsesOf(content)
    if (asked.length !== responses.length) {
      throw invalid(
        'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
      )
    }
    const unasked = responses.find(({ name }) => !asked.some((call) => call['name'] === name))
    if (unasked) throw invalid(`function_response.name: ${string(unasked['name'])} was not called.`)
    if (responses.some(({ response }) => !isJson(response))) throw unknown('response', `contents[${i}]`)
  }
}

/** In the turn that runs, the first call of each step needs the signature it was given. */
function checkSignatures(contents: readonly Content[]): void {
  const start = contents.findLastIndex((content) => content.role !== 'model' && responsesOf(content).length === 0)
  for (const [i, { role, parts }] of contents.entries()) {
    if (i < start || role !== 'model') continue
    const first = parts.find((part) => part['functionCall'] !== undefined)
    if (!first) continue
    const { name, args } = object(first['functionCall'])
    const signature = string(first['thoughtSignature'])
    if (signature === '') {
      throw invalid(
        `Function call \`${string(name)}\` in the \`${i + 1}.\` content block is missing a \`thought_signature\`.`,
      )
    }
    if (!PLACEHOLDERS.includes(signature) && signature !== signCall(string(name), args)) {
      throw invalid('Thought signature is not valid.')
    }
  }
}

function checkTools(tools: readonly Json[], config: Json): void {
  for (const [i, tool] of tools.entries()) {
    checkNames(
      tool,
      ['name', 'description', 'parameters', 'parametersJsonSchema', 'response', 'responseJsonSchema', 'behavior'],
      `tools[0].function_declarations[${i}]`,
    )
    if (!/^[A-Za-z_][\w.:-]{0,127}$/.test(string(tool['name']))) {
      throw invalid(`* GenerateContentRequest.tools[0].function_declarations[${i}].name: Invalid function name.`)
    }
  }
  const { mode, allowedFunctionNames: names } = config
  if (mode !== undefined && !['AUTO', 'ANY', 'NONE', 'VALIDATED'].includes(string(mode))) {
    throw invalid(`Invalid value at 'tool_config.function_calling_config.mode': "${string(mode)}"`)
  }
  if (names !== undefined && mode !== 'ANY' && mode !== 'VALIDATED') {
    throw invalid('allowed_function_names should only be set when function_calling_config.mode is ANY.')
  }
}
