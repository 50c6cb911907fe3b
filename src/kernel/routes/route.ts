import type { Attribution, Change } from '../change.ts'
import type { KernelContext } from '../context.ts'
import type { ActivityEvent } from '../model/event.ts'
import type { Creation, Scope } from '../model/fields.ts'

/** How the operations of the capability table are served. Contract: kernel-1.md 1. */

/** One request as the edge hands it on: path and token are checked, the body is one JSON object. */
export interface Incoming {
  context: KernelContext
  /** `METHOD path` of the table, and the path with its ids. */
  route: string
  path: string
  params: Readonly<Record<string, string>>
  query: URLSearchParams
  /** `undefined` for GET. */
  body: Record<string, unknown> | undefined
  /** Of the header, checked. */
  idempotencyKey?: string
  by: Attribution
}

export interface Answer {
  status: number
  /** Nothing with 204. */
  body?: unknown
  headers?: Readonly<Record<string, string>>
}

/** Serves one operation: made by `read`, `page` and `write`. */
export type Handler = (incoming: Incoming) => Promise<Answer>

/** By `METHOD path`, as the capability table writes it. */
export type Handlers = Readonly<Record<string, Handler>>

/** What a GET asks. */
export interface Asked<Q> {
  context: KernelContext
  scope: Scope
  params: Readonly<Record<string, string>>
  query: Q
}

/** What a write asks; `scope` and `actor` are known already. */
export interface Writing<B> {
  change: Change
  scope: Scope
  params: Readonly<Record<string, string>>
  body: B
  /** What a record that is made bears of its key. */
  creation: Creation
  /** As sent, where the rule needs the key itself. */
  idempotencyKey?: string
}

/** What a write did. */
export interface Written {
  /** By which the record is found when the key comes again. */
  recordId: string
  status?: 200 | 201 | 202
  /** It was done before, and is only told again. */
  isReplay?: boolean
  /** Of the events that the change wrote, the first in its order. */
  answer(events: readonly ActivityEvent[]): object
}
