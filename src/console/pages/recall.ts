import { invalidInput, MemoryError } from '../../memory/errors.ts'
import type { Caller } from '../../memory/caller.ts'
import type { RecallAnswer, RecallHit, Workspace } from '../../memory/model.ts'
import type { ExplainedHit } from '../../memory/recall.ts'
import { parseWith } from '../../memory/routes/route.ts'
import { recallRequest, type RecallRequest } from '../../memory/requests.ts'
import type { MemoryService } from '../../memory/service.ts'
import { toRefusal, type Refusal } from '../errors.ts'
import { highlight, wordsOf, type Fragment } from '../highlight.ts'

/** Characters of a hit's text that are shown; half of them where the hits are many. */
const EXCERPT = 600
const MANY = 30

type Query = (name: string) => string | undefined

/** A line of what a score is made of. */
export interface ScorePart {
  kind: 'words' | 'meaning' | 'speaker' | 'graph'
  name: string
  /** What it was made from. */
  hint?: string
  /** Of the best score, for the bar. */
  share: number
  /** As shown: the lines of a hit add up to its score. */
  shown: string
}

/** A hit with the reasons of its place. */
export interface ShownHit {
  hit: RecallHit
  rank: number
  /** The beginning of the text around the words of the query. */
  excerpt: Fragment[]
  /** One sentence: why did this hit win? */
  why: string
  parts: ScorePart[]
}

export interface RecallData {
  asked: { q: string; mode: string; k: number; collection: string; tag: string; agent: string; depth: number }
  answer?: RecallAnswer
  hits: ShownHit[]
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
    const answer = await service.recall.run(caller, workspace, requestOf(asked), true)
    return { asked, answer, hits: explain(answer.results, asked.q) }
  } catch (error) {
    if (!(error instanceof MemoryError)) throw error
    return { asked, hits: [], refusal: toRefusal(error) }
  }
}

function requestOf({ q, mode, k, collection, tag, agent, depth }: RecallData['asked']): RecallRequest {
  if (tag !== '' && !tag.includes('=')) throw invalidInput('tag must be key=value', 'tag')
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
export function explain(results: readonly ExplainedHit[], query: string): ShownHit[] {
  const byVector = placesBy(results, ({ vector_score }) => vector_score)
  const byKeyword = placesBy(results, ({ keyword_score }) => keyword_score)
  const isAsked = wordsOf(query)
  const best = Math.max(...results.map(({ score }) => score))
  return results.map((hit, index) => ({
    hit,
    rank: index + 1,
    excerpt: highlight(hit.text, isAsked, results.length > MANY ? EXCERPT / 2 : EXCERPT),
    why: whyOf(hit, results[index + 1], byVector.get(hit), byKeyword.get(hit)),
    parts: partsOf(hit, best),
  }))
}

type Signal = (hit: RecallHit) => number | undefined

/** Places from 1, of the hits that have the signal. */
function placesBy(results: readonly RecallHit[], signal: Signal): Map<RecallHit, number> {
  const having = results.filter((hit) => signal(hit) !== undefined)
  having.sort((a, b) => (signal(b) ?? 0) - (signal(a) ?? 0))
  return new Map(having.map((hit, index) => [hit, index + 1]))
}

type Part = Omit<ScorePart, 'share' | 'shown'> & { value: number }

/** What made the score, in the thousandths that are shown: rounded so that they add up. */
function partsOf(hit: ExplainedHit, best: number): ScorePart[] {
  const made = madeOf(hit).filter(({ value, hint }) => value > 0 || hint !== undefined)
  const thousandths = made.map(({ value }) => Math.floor(value * 1000 + 1e-6))
  const missing = Math.round(hit.score * 1000) - thousandths.reduce((sum, n) => sum + n, 0)
  const lost = made.map(({ value }, i) => value * 1000 - (thousandths[i] ?? 0))
  const upwards = new Set(
    [...lost.keys()].sort((a, b) => (lost[b] ?? 0) - (lost[a] ?? 0)).slice(0, Math.max(0, missing)),
  )
  return made.map(({ value, ...part }, i) => ({
    ...part,
    share: best > 0 ? Math.max(0, value / best) : 0,
    shown: (((thousandths[i] ?? 0) + (upwards.has(i) ? 1 : 0)) / 1000).toFixed(3),
  }))
}

function madeOf({ via, score, parts, keyword_score: bm25, vector_score: cosine }: ExplainedHit): Part[] {
  if (via === 'graph') return [{ kind: 'graph', name: 'Over the graph', value: score }]
  const words = {
    kind: 'words',
    name: 'Words',
    ...(bm25 !== undefined && { hint: `BM25 ${bm25.toFixed(2)}` }),
  } as const
  const meaning = {
    kind: 'meaning',
    name: 'Meaning',
    ...(cosine !== undefined && { hint: `cosine ${cosine.toFixed(3)}` }),
  } as const
  // Of one signal alone the score is its own.
  if (!parts) return [{ ...(cosine === undefined ? words : meaning), value: score }]
  return [
    { ...words, value: parts.words },
    { kind: 'words', name: 'Words around it', value: parts.wordsAround },
    { ...meaning, value: parts.meaning },
    { kind: 'meaning', name: 'Meaning around it', value: parts.meaningAround },
    { kind: 'speaker', name: 'Speaker asked for', value: parts.speaker },
  ]
}

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
  const lead = next && next.via === 'seed' ? leadOf(hit.score - next.score) : ''
  return `${capital(signals.join(', '))}.${lead}`
}

const leadOf = (lead: number): string =>
  lead < 0.0005 ? ' Level with the next.' : ` Ahead of the next by ${lead.toFixed(3)}.`

const ordinal = (n: number): string => {
  const suffix = n % 100 >= 11 && n % 100 <= 13 ? 'th' : (['th', 'st', 'nd', 'rd'][n % 10] ?? 'th')
  return `${n}${suffix}`
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
