import { MemoryError } from '../../memory/errors.ts'
import type { Caller } from '../../memory/caller.ts'
import type { RecallAnswer, RecallHit, Workspace } from '../../memory/model.ts'
import { parseWith } from '../../memory/routes/route.ts'
import { recallRequest, type RecallRequest } from '../../memory/requests.ts'
import type { MemoryService } from '../../memory/service.ts'
import { toRefusal, type Refusal } from '../errors.ts'
import { highlight, type Fragment } from '../highlight.ts'

/** Characters of a hit's text that are shown; half of them where the hits are many. */
const EXCERPT = 600
const MANY = 30

type Query = (name: string) => string | undefined

/** A hit with the reasons of its place. */
export interface ExplainedHit {
  hit: RecallHit
  rank: number
  /** The beginning of the text around the words of the query. */
  excerpt: Fragment[]
  /** One sentence: why did this hit win? */
  why: string
  /** Shares of the best among the hits, for bars. */
  vectorShare: number | undefined
  keywordShare: number | undefined
}

export interface RecallData {
  asked: { q: string; mode: string; k: number; collection: string; tag: string; agent: string; depth: number }
  answer?: RecallAnswer
  hits: ExplainedHit[]
  refusal?: Refusal
}

/** The answer to the query in the address, explained; a refusal is part of the page. */
export async function recallData(
  service: MemoryService,
  workspace: Workspace,
  caller: Caller,
  query: Query,
): Promise<RecallData> {
  const asked = {
    q: query('q') ?? '',
    mode: query('mode') ?? 'hybrid',
    k: Number(query('k') ?? 10),
    collection: query('collection') ?? '',
    tag: query('tag') ?? '',
    agent: query('agent') ?? '',
    depth: Number(query('depth') ?? 0),
  }
  if (asked.q === '') return { asked, hits: [] }
  try {
    const answer = await service.recall.run(caller, workspace, requestOf(asked))
    return { asked, answer, hits: explain(answer.results, asked.q) }
  } catch (error) {
    if (!(error instanceof MemoryError)) throw error
    return { asked, hits: [], refusal: toRefusal(error) }
  }
}

function requestOf({ q, mode, k, collection, tag, agent, depth }: RecallData['asked']): RecallRequest {
  const [key = '', ...value] = tag.split('=')
  return parseWith(recallRequest, {
    query: q,
    mode,
    k,
    filters: {
      ...(collection !== '' && { collection_id: collection }),
      ...(tag !== '' && { tags: { [key.trim()]: value.join('=').trim() } }),
      ...(agent !== '' && { agent_id: agent }),
    },
    ...(depth > 0 && { graph_expansion: { depth, direction: 'both' } }),
  })
}

/** Places each hit among the others by every signal, and says what decided. */
export function explain(results: readonly RecallHit[], query: string): ExplainedHit[] {
  const byVector = placesBy(results, ({ vector_score }) => vector_score)
  const byKeyword = placesBy(results, ({ keyword_score }) => keyword_score)
  const bestVector = best(results, ({ vector_score }) => vector_score)
  const bestKeyword = best(results, ({ keyword_score }) => keyword_score)
  return results.map((hit, index) => ({
    hit,
    rank: index + 1,
    excerpt: highlight(hit.text, query, results.length > MANY ? EXCERPT / 2 : EXCERPT),
    why: whyOf(hit, results[index + 1], byVector.get(hit), byKeyword.get(hit)),
    vectorShare: shareOf(hit.vector_score, bestVector),
    keywordShare: shareOf(hit.keyword_score, bestKeyword),
  }))
}

type Signal = (hit: RecallHit) => number | undefined

/** Places from 1, of the hits that have the signal. */
function placesBy(results: readonly RecallHit[], signal: Signal): Map<RecallHit, number> {
  const having = results.filter((hit) => signal(hit) !== undefined)
  having.sort((a, b) => (signal(b) ?? 0) - (signal(a) ?? 0))
  return new Map(having.map((hit, index) => [hit, index + 1]))
}

const best = (results: readonly RecallHit[], signal: Signal): number =>
  Math.max(0, ...results.map((hit) => signal(hit) ?? 0))

const shareOf = (value: number | undefined, most: number): number | undefined =>
  value === undefined ? undefined : most > 0 ? Math.max(0, value / most) : 0

function whyOf(
  hit: RecallHit,
  next: RecallHit | undefined,
  vectorPlace: number | undefined,
  keywordPlace: number | undefined,
): string {
  if (hit.via === 'graph') {
    const { layer = 1, edge_type = '' } = hit.graph_provenance ?? {}
    return `Reached over the graph: ${layer === 1 ? 'one hop' : `${layer} hops`} from a direct hit, along ${edge_type}.`
  }
  const signals = [
    keywordPlace === undefined ? 'none of its words match' : `${ordinal(keywordPlace)} by words`,
    vectorPlace === undefined ? 'no vector' : `${ordinal(vectorPlace)} by meaning`,
  ]
  const lead = next && next.via === 'seed' ? ` Ahead of the next by ${(hit.score - next.score).toFixed(3)}.` : ''
  return `${capital(signals.join(', '))}.${lead}`
}

const ordinal = (n: number): string => {
  const suffix = n % 100 >= 11 && n % 100 <= 13 ? 'th' : (['th', 'st', 'nd', 'rd'][n % 10] ?? 'th')
  return `${n}${suffix}`
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
