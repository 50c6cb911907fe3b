/**
 * Calls of every sort, known by their number: client, provider and whoever checks the records work out from it alone what
 * happens to a call, and what its answer says that it used.
 */
export type Sort =
  | 'json'
  | 'large'
  | 'stream'
  | 'counted stream'
  | 'message'
  | 'message stream'
  | 'embeddings'
  | 'cached'
  /** The first attempt is refused with 503. */
  | 'retried'
  /** The first attempt is a stream that begins with an error. */
  | 'restarted'
  /** The provider refuses it for good. */
  | 'refused'
  /** The provider breaks its stream off. */
  | 'broken'
  /** The client goes before the answer comes. */
  | 'hung up'
  /** The client goes in the middle of the stream. */
  | 'left'

/** Of twenty calls one fails before it is answered, one while it streams, two lose their clients. */
const MIX: readonly Sort[] = [
  'json',
  'stream',
  'json',
  'retried',
  'counted stream',
  'hung up',
  'json',
  'large',
  'message',
  'broken',
  'stream',
  'left',
  'cached',
  'restarted',
  'json',
  'message stream',
  'embeddings',
  'cached',
  'refused',
  'stream',
]

/** Numbers in a row are no series: the sorts must not fall into step with the shares of credentials. */
const mixed = (number: number): number => Math.imul(number + 1, 2_654_435_761) >>> 12

export const sortOf = (number: number): Sort => MIX[mixed(number) % MIX.length] ?? 'json'

/** So many numbers from one on, of these sorts alone where they are named. */
export function* numbersFrom(first: number, count: number, ...sorts: readonly Sort[]): Generator<number> {
  for (let number = first, found = 0; found < count; number++) {
    if (sorts.length > 0 && !sorts.includes(sortOf(number))) continue
    found++
    yield number
  }
}

/** Calls that may be answered from the cache ask one of a few questions. */
const QUESTIONS = 5
const QUESTION = 1_000_000_000

/** What the provider is told as the number of a call. */
export const toldAs = (number: number): number =>
  sortOf(number) === 'cached' ? QUESTION + (mixed(number) % QUESTIONS) : number

export const isQuestion = (told: number): boolean => told >= QUESTION

export interface Told {
  readonly input: number
  readonly cached: number
  readonly output: number
}

/** What the provider says of the call with this number. */
export const usageOf = (told: number): Told => ({
  input: 100 + (told % 997),
  cached: (told % 7) * 10,
  output: 10 + (told % 89),
})

/** The prices of the model, USD for a million tokens. */
export const PRICES = { input: '3', output: '15', cache_read: '0.3' }

/** In nano-dollars. */
export const costOf = ({ input, cached, output }: Told): bigint =>
  BigInt(input - cached) * 3000n + BigInt(cached) * 300n + BigInt(output) * 15_000n

export const MODEL = 'load-1'

/** The part of `mem.yaml` that a server under load needs. */
export const configFor = (port: number): string =>
  JSON.stringify({
    gateway: {
      allowed_hosts: [`127.0.0.1:${port}`],
      prices: [{ provider: 'openai-compatible', model: 'load-*', usd_per_million: PRICES }],
    },
  })

/** Three credentials in the shares 5 : 3 : 2; their keys begin with their names. */
export const credentialsFor = (port: number): Record<string, unknown>[] =>
  Object.entries({ a: 0.5, b: 0.3, c: 0.2 }).map(([name, weight]) => ({
    provider: 'openai-compatible',
    name,
    weight,
    base_url: `http://127.0.0.1:${port}/v1`,
    api_key: `${name}-key-of-the-provider`,
  }))
