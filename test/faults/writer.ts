import { randomSource } from '../memory/search/random-vectors.ts'
import type { RunningServer } from '../support/server.ts'
import { tryCall } from './http.ts'

/** What a Memory must be, as far as its one writer knows. */
export interface Known {
  id: string
  watermark: string
  content: string
  tags: Record<string, string>
  /** A word that stands in this content and nowhere else. */
  token: string
  forgotten: boolean
}

type Body = Partial<Pick<Known, 'content' | 'tags' | 'token' | 'forgotten'>>

/** A mutation asked for; while it is not answered, the Memory may be as before or as `becomes` says. */
export interface Wish {
  requestId: string
  op: string
  method: string
  path: string
  body?: unknown
  headers?: Record<string, string>
  /** Absent for an imprint. */
  memory?: Known
  becomes?: Body
  /** The far end of a link. */
  linkTo?: Known
  /** The Edge of an unlink. */
  edgeId?: string
}

/** A mutation that the server said is done. */
export interface Acknowledged {
  requestId: string
  op: string
  target: string
  /** Of operations that move the head. */
  watermark?: string
}

const TOKEN_LETTERS = Array.from('bcdfghjklmnpqrtvwxz')
const WORDS = 'rye bread oven keeper harbour lamp rope tide signal north letter winter boat engine salt'.split(' ')

/** Writes at random, one request at a time and only to Memories of its own, so that it knows what each must be. */
export class Writer {
  readonly memories: Known[] = []
  readonly edges = new Map<string, { source: Known; target: Known }>()
  readonly acknowledged: Acknowledged[] = []
  /** Words of contents that were replaced or forgotten. */
  readonly goneTokens: string[] = []
  /** Asked for when the server went away. */
  open: Wish | undefined
  readonly #workspace: string
  readonly #name: string
  readonly #random: () => number
  #requests = 0

  constructor(workspace: string, name: string, seed: number) {
    this.#workspace = workspace
    this.#name = name
    this.#random = randomSource(seed)
  }

  /** Until the server does not answer any more. */
  async run(server: RunningServer, onAcknowledged: () => void): Promise<void> {
    for (;;) {
      const wish = this.#choose()
      this.open = wish
      const reply = await tryCall(server, wish.method, this.pathOf(wish), wish.body, this.headersOf(wish))
      if (!reply) return
      if (reply.status >= 300) throw new Error(`${wish.op} got ${reply.status} ${JSON.stringify(reply.body)}`)
      this.acknowledge(wish, reply.body)
      onAcknowledged()
    }
  }

  pathOf = (wish: Wish): string => `/workspaces/${this.#workspace}${wish.path}`

  headersOf = (wish: Wish): Record<string, string> => ({
    'Mem-Agent-Id': `agent_${this.#name}`,
    'X-Request-ID': wish.requestId,
    ...wish.headers,
  })

  /** Takes in the answer to the open wish. */
  acknowledge(wish: Wish, answer: { memory_id: string; watermark: string; edge?: { edge_id: string } }): void {
    this.open = undefined
    const { requestId, op } = wish
    if (op === 'link' || op === 'unlink') return this.#acknowledgeEdge(wish, answer?.edge?.edge_id)
    const memory = wish.memory ?? {
      id: answer.memory_id,
      watermark: '',
      content: '',
      tags: {},
      token: '',
      forgotten: false,
    }
    if (!wish.memory) this.memories.push(memory)
    this.settle(memory, wish.becomes)
    if (memory.forgotten) this.#dropEdges(memory)
    if (!op.startsWith('tag')) memory.watermark = answer.watermark
    this.acknowledged.push({
      requestId,
      op,
      target: memory.id,
      ...(!op.startsWith('tag') && { watermark: memory.watermark }),
    })
  }

  /** The Memory is now what the wish made of it. */
  settle(memory: Known, becomes: Body = {}): void {
    const isReplaced = becomes.token !== undefined && !becomes.content?.includes(memory.token)
    if (memory.token !== '' && (isReplaced || becomes.forgotten)) this.goneTokens.push(memory.token)
    Object.assign(memory, becomes)
  }

  #acknowledgeEdge({ requestId, op, memory, linkTo, edgeId = '' }: Wish, madeId = edgeId): void {
    if (memory && linkTo) this.edges.set(madeId, { source: memory, target: linkTo })
    else this.edges.delete(edgeId)
    this.acknowledged.push({ requestId, op, target: madeId })
  }

  #dropEdges(memory: Known): void {
    for (const [id, { source, target }] of this.edges) if (source === memory || target === memory) this.edges.delete(id)
  }

  #choose(): Wish {
    const requestId = `${this.#name}-${++this.#requests}`
    const live = this.memories.filter(({ forgotten }) => !forgotten)
    const memory = this.#pick(live)
    if (!memory || live.length < 3) return this.#imprint(requestId)
    const path = `/memories/${memory.id}`
    const match = { 'If-Match': memory.watermark }
    const token = this.#token()
    const about = { requestId, memory, path }
    switch (Math.floor(this.#random() * 10)) {
      case 0: {
        const content = this.#text(token)
        return { ...about, op: 'update', method: 'PUT', body: { content }, headers: match, becomes: { content, token } }
      }
      case 1: {
        const patch = [{ old_string: memory.token, new_string: token }]
        const content = memory.content.replace(memory.token, token)
        return { ...about, op: 'patch', method: 'PATCH', body: { patch }, headers: match, becomes: { content, token } }
      }
      case 2: {
        const added = ` ${this.#words(20)}`
        const becomes = { content: memory.content + added }
        return { ...about, op: 'append', method: 'POST', path: `${path}:append`, body: { content: added }, becomes }
      }
      case 3:
        return { ...about, op: 'forget', method: 'DELETE', becomes: { forgotten: true } }
      case 4:
      case 5:
        return this.#tag(about, memory)
      case 6:
      case 7:
        return this.#link(about, memory, live)
      default:
        return this.#imprint(requestId)
    }
  }

  #imprint(requestId: string): Wish {
    const token = this.#token()
    const content = this.#text(token)
    const tags = { writer: this.#name, request: requestId }
    // Small Cells, so that a short text has several.
    const body = { content, tags, chunker_id: 'default', chunker_config: { target_tokens: '16' } }
    const headers = { 'Idempotency-Key': requestId }
    return {
      requestId,
      op: 'imprint',
      method: 'POST',
      path: '/memories',
      body,
      headers,
      becomes: { content, tags, token },
    }
  }

  #tag(about: { requestId: string; path: string }, memory: Known): Wish {
    const { mood, ...others } = memory.tags
    const path = `${about.path}/tags/mood`
    if (mood !== undefined)
      return { ...about, memory, op: 'tag_delete', method: 'DELETE', path, becomes: { tags: others } }
    const value = about.requestId
    const becomes = { tags: { ...others, mood: value } }
    return { ...about, memory, op: 'tag_set', method: 'PUT', path, body: { value }, becomes }
  }

  #link(about: { requestId: string; path: string }, memory: Known, live: Known[]): Wish {
    const [edgeId] = [...this.edges].find(([, { source }]) => source === memory) ?? []
    if (edgeId !== undefined)
      return { ...about, memory, op: 'unlink', method: 'DELETE', path: `/edges/${edgeId}`, edgeId }
    const linkTo = this.#pick(live.filter((other) => other !== memory)) ?? memory
    const body = { target_memory_id: linkTo.id, edge_type: 'references' }
    return { ...about, memory, op: 'link', method: 'POST', path: `${about.path}/edges`, body, linkTo }
  }

  #pick = <T>(list: readonly T[]): T | undefined => list[Math.floor(this.#random() * list.length)]

  #token = (): string => Array.from({ length: 14 }, () => this.#pick(TOKEN_LETTERS)).join('')

  #words = (count: number): string => Array.from({ length: count }, () => this.#pick(WORDS)).join(' ')

  /** Up to 160 words in paragraphs; the token stands first, where no Cell ends in the middle of it. */
  #text = (token: string): string => {
    const paragraphs = Array.from({ length: 1 + Math.floor(this.#random() * 8) }, () => this.#words(20))
    return `${token} ${paragraphs.join('\n\n')}`
  }
}
