import { request, type Dispatcher } from 'undici'
import { MODEL, sortOf, toldAs, type Sort } from './calls.ts'
import { WORD } from './provider.ts'

/** How a call ended, as its client saw it. */
export interface Seen {
  readonly number: number
  readonly sort: Sort
  /** Of the request and its usage record. */
  readonly id: string
  readonly end: 'whole' | 'broken' | 'left' | 'lost'
  /** 0: none came. */
  readonly status: number
  /** Of an error. */
  readonly code: string | undefined
  /** Words of a stream that came. */
  readonly words: number
  /** Epoch ms. */
  readonly at: number
}

const LARGE = 'some "quoted" text\nwith lines and words '.repeat(2600)
const HANG_UP_MS = 40
/** Words of a stream after which its client leaves. */
const LEAVES_AFTER = 5
const PATHS: Partial<Record<Sort, string>> = {
  message: 'messages',
  'message stream': 'messages',
  embeddings: 'embeddings',
}
const STREAMS: ReadonlySet<Sort> = new Set([
  'stream',
  'counted stream',
  'message stream',
  'restarted',
  'broken',
  'left',
])

function bodyOf(number: number, sort: Sort): string {
  const text = `call ${toldAs(number)} ${sort === 'large' ? LARGE : ''}`
  if (sort === 'embeddings') return JSON.stringify({ model: MODEL, input: text })
  return JSON.stringify({
    model: MODEL,
    messages: [{ role: 'user', content: text }],
    ...(STREAMS.has(sort) && { stream: true }),
    ...(sort === 'counted stream' && { stream_options: { include_usage: true } }),
    ...(PATHS[sort] === 'messages' && { max_tokens: 100 }),
  })
}

export interface Target {
  /** Of the server. */
  readonly url: string
  readonly key: string
  readonly dispatcher: Dispatcher
  /** Before the number in the ids of requests. */
  readonly run: string
}

/** Makes the call with this number, and behaves as its sort says. Never rejects. */
export async function makeCall({ url, key, dispatcher, run }: Target, number: number): Promise<Seen> {
  const sort = sortOf(number)
  const id = `${run}-${number}`
  const controller = new AbortController()
  let status = 0
  let text = ''
  const words = (): number => text.split(WORD).length - 1
  const seen = (end: Seen['end']): Seen => ({
    number,
    sort,
    id,
    end,
    status,
    code: status === 200 ? undefined : /"code":"(\w+)"/.exec(text)?.[1],
    words: words(),
    at: Date.now(),
  })
  const timer = sort === 'hung up' ? setTimeout(() => controller.abort(), HANG_UP_MS) : undefined
  try {
    const answer = await request(`${url}/rest/v1/llm-gateway/v1/${PATHS[sort] ?? 'chat/completions'}`, {
      method: 'POST',
      dispatcher,
      signal: controller.signal,
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'x-request-id': id,
        ...(sort === 'cached' && { 'x-mem-cache': 'on' }),
      },
      body: bodyOf(number, sort),
    })
    status = answer.statusCode
    for await (const chunk of answer.body) {
      text += String(chunk)
      if (sort === 'left' && words() >= LEAVES_AFTER) controller.abort()
    }
    return seen(isWhole(sort, status, text) ? 'whole' : 'broken')
  } catch {
    return seen(controller.signal.aborted ? 'left' : 'lost')
  } finally {
    clearTimeout(timer)
  }
}

const isWhole = (sort: Sort, status: number, text: string): boolean =>
  status !== 200 || !STREAMS.has(sort) || text.includes(sort === 'message stream' ? 'message_stop' : 'data: [DONE]')

/**
 * Makes calls with these numbers, so many at once, and no longer than `goesOn` says.
 * @param goesOn is asked after each
 */
export async function makeCalls(
  target: Target,
  numbers: Iterable<number>,
  atOnce: number,
  goesOn: (seen: Seen) => boolean = () => true,
): Promise<Seen[]> {
  const all: Seen[] = []
  const left = numbers[Symbol.iterator]()
  let isOver = false
  const client = async (): Promise<void> => {
    for (let next = left.next(); !isOver && next.done !== true; next = left.next()) {
      const seen = await makeCall(target, next.value)
      all.push(seen)
      if (!goesOn(seen)) isOver = true
    }
  }
  await Promise.all(Array.from({ length: atOnce }, client))
  return all
}
