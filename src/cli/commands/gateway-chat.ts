import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { errorText } from '../../base/errors.ts'
import { MemoryTimeoutError } from '../../client/errors.ts'
import { path } from '../../client/transport.ts'
import type { UsageRecord } from '../../gateway/model.ts'
import { defineCommand, type Context, type Io } from '../command.ts'
import { CliError, EXIT, usageError } from '../exit.ts'
import { ACCESS_FLAGS, accessOf, type Access } from '../gateway/access.ts'
import { openCompletion, readAnswer, readStream, type Ended } from '../gateway/completion.ts'
import { readText } from '../input.ts'
import { callRest, type List } from '../platform/rest.ts'
import { untilStopped } from '../until-stopped.ts'

export const chat = defineCommand({
  args: { prompt: { help: 'What to say; `-` reads standard input' } },
  flags: {
    model: { value: 'name', required: true, help: 'Model or group; `mem gateway models` lists them' },
    system: { value: 'text', help: 'What the model is told first' },
    image: { value: 'file', repeat: true, help: 'Picture to show it: PNG, JPEG, GIF, WebP, or an https address' },
    json: { help: 'Make it answer in JSON' },
    stream: { negatable: true, help: 'Print the answer as it comes (yes, in text output)' },
    credential: { value: 'credential', help: 'Only through this one, by name or id' },
    ...ACCESS_FLAGS,
  },
  notes:
    'The answer goes to standard output; tokens and cost to standard error. With a virtual key, only --no-stream tells ' +
    'the cost. Exit code 130 after Ctrl-C.',
  examples: [
    'gateway chat "Why is the sky blue?" --model gpt-5-mini',
    'gateway chat - --model claude-opus-4-7 --system "Summarise in three lines." < report.txt',
    'gateway chat "What is this?" --model fast --image photo.jpg --output json',
  ],
  async run(context, input) {
    const { io, settings } = context
    if (input.prompt === '-' && input['key-file'] === '-') {
      throw usageError(
        'the prompt and --key-file both want standard input',
        'Put the key into a file, or MEM_GATEWAY_KEY.',
      )
    }
    const prompt = input.prompt === '-' ? await readText(io, '-') : input.prompt
    if (prompt.trim() === '' && input.image.length === 0) throw usageError('the prompt is empty')
    const streams = input.stream !== false && settings.output === 'text'
    const body = {
      model: input.model,
      messages: [
        ...systemOf(input.system, input.json && !/json/i.test(prompt)),
        { role: 'user', content: contentOf(prompt, input.image) },
      ],
      ...(input.json && { response_format: { type: 'json_object' } }),
      ...(streams && { stream: true, stream_options: { include_usage: true } }),
    }
    const access = await accessOf(context, input)
    await untilStopped(async (stopped) => {
      // An answer takes as long as it takes, unless somebody says otherwise.
      const late = settings.isTimeoutGiven ? AbortSignal.timeout(settings.timeoutMs) : undefined
      const signal = late ? AbortSignal.any([stopped, late]) : stopped
      const call = { token: access.token, credential: input.credential, body, signal }
      try {
        const response = await openCompletion(context, call)
        const ended = streams ? await showStream(io, response) : await showAnswer(context, response)
        await tellCost(context, access, response, ended, signal)
        stopped.throwIfAborted()
      } catch (error) {
        if (stopped.aborted) throw new CliError(EXIT.stopped, 'stopped')
        throw late?.aborted ? new MemoryTimeoutError(settings.endpoint, settings.timeoutMs) : error
      }
    })
  },
})

/** OpenAI refuses to answer in JSON when no message has the word. */
function systemOf(text: string | undefined, asksJson: boolean | undefined): object[] {
  const line = asksJson && !/json/i.test(text ?? '') ? ['Answer in JSON.'] : []
  const content = [...(text === undefined ? [] : [text]), ...line].join('\n')
  return content === '' ? [] : [{ role: 'system', content }]
}

function contentOf(prompt: string, images: readonly string[]): string | object[] {
  if (images.length === 0) return prompt
  return [
    { type: 'text', text: prompt },
    ...images.map((url) => ({ type: 'image_url', image_url: { url: imageUrl(url) } })),
  ]
}

const PICTURES: readonly (readonly [type: string, start: string])[] = [
  ['image/png', '89504e47'],
  ['image/jpeg', 'ffd8ff'],
  ['image/gif', '47494638'],
  ['image/webp', '52494646'],
]

/** A file travels inside the request. @throws CliError when it cannot be read, or is no picture */
function imageUrl(image: string): string {
  if (/^https:\/\//i.test(image)) return image
  const bytes = readPicture(image)
  const start = bytes.toString('hex', 0, 4)
  const [type] = PICTURES.find(([, mark]) => start.startsWith(mark)) ?? []
  if (type === undefined) throw usageError(`${image} is no PNG, JPEG, GIF or WebP`)
  return `data:${type};base64,${bytes.toString('base64')}`
}

function readPicture(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    throw new CliError(EXIT.failure, `cannot read ${file}: ${errorText(error)}`, 'Check the path.')
  }
}

async function showStream(io: Io, response: Response): Promise<Ended> {
  let last = '\n'
  const write = (text: string): void => {
    last = text
    io.stdout.write(io.stdout.isTTY ? harmless(text) : text)
  }
  try {
    return await readStream(response, write)
  } finally {
    if (!last.endsWith('\n')) io.stdout.write('\n')
  }
}

async function showAnswer({ io, output }: Context, response: Response): Promise<Ended> {
  const { whole, text, ...ended } = await readAnswer(response)
  await output.text(whole, io.stdout.isTTY ? harmless(text) : text)
  return ended
}

/** What a model says must not steer the terminal. */
// oxlint-disable-next-line no-control-regex -- the characters that do
const harmless = (text: string): string => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '')

/** Tokens, cost and who answered, on standard error. */
async function tellCost(
  context: Context,
  access: Access,
  { headers }: Response,
  ended: Ended,
  signal: AbortSignal,
): Promise<void> {
  if (context.settings.quiet) return
  const { usage, finishReason } = ended
  // The answer was given, and stays one without its cost.
  const recorded = (): Promise<string | undefined> =>
    recordedCost(context, access, headers.get('x-request-id'), signal).catch(() => undefined)
  const cost = headers.get('x-mem-cost') ?? (await recorded())
  const facts = [
    usage && `${usage.prompt_tokens} + ${usage.completion_tokens} tokens`,
    cost === undefined ? undefined : `${cost} USD`,
    ['x-mem-provider', 'x-mem-credential', 'x-mem-model'].flatMap((name) => headers.get(name) ?? []).join(' '),
    finishReason === 'length' ? 'cut off at the output limit' : undefined,
    headers.has('x-mem-dropped') ? `without ${headers.get('x-mem-dropped')}` : undefined,
  ]
  context.output.note(facts.filter((fact) => fact !== undefined && fact !== '').join('  '))
}

const LOOKS = 5
const PAUSE_MS = 150

/** Of a stream, whose head came before its cost was known: from its record, which is written a moment later. */
async function recordedCost(
  context: Context,
  access: Access,
  requestId: string | null,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (!access.isSession || requestId === null) return undefined
  const call = { method: 'GET', path: path`/rest/v1/llm-gateway/usage`, query: { request_id: requestId }, signal }
  for (let look = 0; look < LOOKS; look++) {
    await sleep(PAUSE_MS, undefined, { signal })
    const { usage } = await callRest<List<'usage', UsageRecord>>(context, { 'session-token': access.token }, call)
    const [record] = usage
    if (record) return record.cost_usd ?? undefined
  }
  return undefined
}
