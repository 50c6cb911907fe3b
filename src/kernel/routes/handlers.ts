import * as z from 'zod'
import { canonicalJson } from '../../base/canonical-json.ts'
import { sha256 } from '../../base/hash.ts'
import { makeChange, type Attribution } from '../change.ts'
import { invalid } from '../errors.ts'
import { party, scope as scopeSchema, visibility, type Scope } from '../model/fields.ts'
import { makeShared } from '../shared-changes.ts'
import { findKey, useKey, type KeyUse } from '../store/keys.ts'
import type { PageRequest, RecordPage } from '../store/records.ts'
import { scopeKey } from '../store/scope-key.ts'
import { readCursor, writeCursor } from './cursor.ts'
import { check, integer, readQuery, scopeOfQuery } from './query.ts'
import type { Answer, Asked, Handler, Incoming, Writing, Written } from './route.ts'

const REQUIRED = 'scope is required: scopeKind and scopeId in the query'

/** A GET of one thing. */
export function read<S extends z.ZodRawShape>(
  shape: S,
  ask: (asked: Asked<z.infer<z.ZodObject<S>>>) => Promise<unknown>,
): Handler {
  const schema = z.object(shape)
  return async ({ context, params, query }) => {
    const scope = scopeOfQuery(query)
    if (!scope) throw invalid(REQUIRED)
    return { status: 200, body: await ask({ context, scope, params, query: readQuery(query, schema) }) }
  }
}

const PAGE = {
  limit: integer(1, 100).default(50),
  offset: integer(0, 1_000_000).exactOptional(),
  cursor: z.string().exactOptional(),
}

/** A GET of a bare array, with `X-Next-Cursor` where there is more; `limits` in place of 1-100. Contract: kernel-1.md 1.7 */
export function page<S extends z.ZodRawShape>(
  shape: S,
  ask: (asked: Asked<z.infer<z.ZodObject<S>>>, page: PageRequest) => Promise<RecordPage<unknown>>,
  limits: z.ZodType<number, string | undefined> = PAGE.limit,
): Handler {
  const [filterSchema, pageSchema] = [z.object(shape), z.object({ ...PAGE, limit: limits })]
  return async ({ context, route, params, query }) => {
    const scope = scopeOfQuery(query)
    if (!scope) throw invalid(REQUIRED)
    const filter = readQuery(query, filterSchema)
    const { limit, offset, cursor } = readQuery(query, pageSchema)
    if (cursor !== undefined && offset !== undefined) throw invalid('cursor and offset exclude each other')
    const { cursorSecret } = context.store
    const list = `${route}\n${scopeKey(scope)}\n${canonicalJson(filter)}`
    const { items, next } = await ask(
      { context, scope, params, query: filter },
      {
        limit,
        ...(offset !== undefined && { offset }),
        ...(cursor !== undefined && { after: readCursor(cursorSecret, list, cursor) }),
      },
    )
    return {
      status: 200,
      body: items,
      ...(next && { headers: { 'X-Next-Cursor': writeCursor(cursorSecret, list, next) } }),
    }
  }
}

const REPLAYED = { 'Idempotent-Replay': 'true' }

interface WriteOptions<B, P> {
  /** 400 without a key. */
  keyRequired?: boolean
  /** Other places of the body that name a scope. */
  scopes?: (body: B) => readonly (Scope | undefined)[]
  /** The record as it is now, in the shape of the answer, without events: for a key that comes again. */
  replay: (asked: Asked<B>, recordId: string) => Promise<object>
  /** What must be known or done before the transaction: it may ask others. */
  before?: (asked: Asked<B>, by: Attribution) => Promise<P>
  /** Made as `makeShared`, for what many ask for at once. */
  isShared?: boolean
}

/** Fields of a body that are no content. */
const claims = z.object({
  scope: scopeSchema.exactOptional(),
  actor: party.exactOptional(),
  visibility: visibility.exactOptional(),
  idempotencyKey: z.string().exactOptional(),
})

/**
 * A write: one transaction with its events and the use of its key; with a key that was used it answers 200 and does nothing.
 * Contract: kernel-1.md 1.2, 1.5
 */
export const write =
  <S extends z.ZodType<object>, P = undefined>(
    schema: S,
    { keyRequired = false, scopes, replay, before, isShared = false }: WriteOptions<z.infer<S>, P>,
    run: (writing: Writing<z.infer<S>>, prepared: P | undefined) => Promise<Written>,
  ): Handler =>
  async (incoming) => {
    const { context, params, query, body: sent = {} } = incoming
    const body = check(schema, sent)
    const told = claims.parse(sent)
    const scope = agreedScope([scopeOfQuery(query), told.scope, ...(scopes?.(body) ?? [])])
    const key = incoming.idempotencyKey ?? checkedKey(told.idempotencyKey)
    if (keyRequired && key === undefined) throw invalid('an Idempotency-Key is required')
    const use = key === undefined ? undefined : keyUse(incoming, scope, key, sent)
    const asked = { context, scope, params, query: body }
    const replayed = async (recordId: string): Promise<Answer> => ({
      status: 200,
      body: await replay(asked, recordId),
      headers: REPLAYED,
    })
    const known = use && (await findKey(context.store.database, use))
    if (known !== undefined) return replayed(known)
    const by = {
      ...incoming.by,
      ...(told.actor && incoming.by.actorSource === 'claimed' && { actor: told.actor }),
      ...(told.visibility && { visibility: told.visibility }),
    }
    try {
      const prepared = await before?.(asked, by)
      const make = isShared ? makeShared : makeChange
      const { result, events } = await make(context, scope, by, async (change) => {
        const creation = use && { idempotencyKeyHash: `sha256:${use.keyHash}`, creationFingerprint: use.fingerprint }
        const idempotencyKey = key === undefined ? {} : { idempotencyKey: key }
        const written = await run(
          { change, scope, params, body, creation: creation ?? {}, ...idempotencyKey },
          prepared,
        )
        const other = use && (await useKey(change.tx, use, written.recordId, change.now))
        if (other !== undefined) throw new KeyTaken(other)
        return written
      })
      return {
        status: result.status ?? 200,
        body: result.answer(events),
        ...(result.isReplay && { headers: REPLAYED }),
      }
    } catch (error) {
      // Of two at once the other was first: whatever stood in the way of this one was that.
      const first = error instanceof KeyTaken ? error.recordId : use && (await findKey(context.store.database, use))
      if (first === undefined) throw error
      return replayed(first)
    }
  }

/** The key was used while this transaction ran. */
class KeyTaken extends Error {
  readonly recordId: string

  constructor(recordId: string) {
    super('idempotency key taken')
    this.recordId = recordId
  }
}

/** @throws invalid for none, or two that differ. Contract: kernel-1.md 1.2 */
function agreedScope(given: readonly (Scope | undefined)[]): Scope {
  const [first, ...others] = given.filter((scope) => scope !== undefined)
  if (!first) throw invalid('scope is required: in the body, or scopeKind and scopeId in the query')
  if (others.some(({ kind, id }) => kind !== first.kind || id !== first.id)) {
    throw invalid('scope is given twice, and differs')
  }
  return first
}

/** @throws invalid for a key that is too long or holds control characters */
export function checkedKey(key: string | undefined): string | undefined {
  if (key === undefined) return undefined
  if (key.length === 0 || Buffer.byteLength(key) > 256 || /\p{Cc}/u.test(key)) {
    throw invalid('an Idempotency-Key must have 1 to 256 bytes without control characters')
  }
  return key
}

function keyUse({ route, path }: Incoming, scope: Scope, key: string, sent: Record<string, unknown>): KeyUse {
  const { idempotencyKey: _k, actor: _a, visibility: _v, ...content } = sent
  const method = route.slice(0, route.indexOf(' '))
  return { scope, route: `${method} ${path}`, keyHash: sha256(key), fingerprint: sha256(canonicalJson(content)) }
}
