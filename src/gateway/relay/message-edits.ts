import { sha256 } from '../../base/hash.ts'
import { unsigned } from '../chat/anthropic/unsigned.ts'
import { FAMILIES } from '../chat/form.ts'
import type { Kind } from '../model.ts'
import { itemsAt, membersAt, removals, skipValue, type Change, type Member } from './body.ts'

/** What the messages of a chat request need to be taken by a kind. */
export interface MessageEdits {
  readonly changes: readonly Change[]
  /** For `x-mem-dropped`. */
  readonly dropped: readonly string[]
}

const NONE: MessageEdits = { changes: [], dropped: [] }
const GROQ_NAME = 'messages[].name'

/** What the signatures of thoughts that our own answers made begin with. */
const MARK = '"unsigned:'
const UNSIGNED: ReadonlySet<unknown> = new Set(FAMILIES.map(unsigned))

/** Whether thoughts of other families may stand in messages for Claude. */
export const mayHoldForeign = (body: Buffer): boolean => body.includes(MARK)

/**
 * Takes out the thoughts of other families, which Claude refuses, and messages that hold nothing else. Contract: gateway.md
 * 5.3.
 * @param start of the messages, a list
 */
export function withoutForeign(body: Buffer, start: number): Change[] {
  const messages = itemsIn(body, start)
  const empty = new Set<Member>()
  const changes = messages.flatMap((message) => {
    const content = named(membersAt(body, message.start), 'content')
    const blocks = content ? itemsIn(body, content.start) : []
    const foreign = new Set(blocks.filter((block) => isForeign(body, block)))
    if (foreign.size < blocks.length || blocks.length === 0) return removals(blocks, (block) => foreign.has(block))
    empty.add(message)
    return []
  })
  return [...changes, ...removals(messages, (message) => empty.has(message))]
}

const itemsIn = (body: Buffer, start: number): Member[] =>
  itemsAt(body, start).map((at) => ({ at, start: at, end: skipValue(body, at) }))

function isForeign(body: Buffer, { start }: Member): boolean {
  const signature = named(membersAt(body, start), 'signature')
  return signature !== undefined && UNSIGNED.has(stringAt(body, signature))
}

/**
 * Groq takes no names of messages; Mistral takes tool-call ids of its own form only, and thoughts as chunks of the content.
 * Contract: gateway.md 5.2.
 * @param start of the messages, a list
 */
export function editMessages(body: Buffer, start: number, kind: Kind): MessageEdits {
  const messages = (mark: string): Members[] =>
    body.includes(mark, start) ? itemsAt(body, start).map((at) => membersAt(body, at)) : []
  if (kind === 'groq') {
    const changes = messages('"name"').flatMap((members) => without(members, 'name'))
    return { changes, dropped: changes.length > 0 ? [GROQ_NAME] : [] }
  }
  if (kind !== 'mistral') return NONE
  const changes = messages('"tool_call').flatMap((members) => idChanges(body, members))
  return {
    changes: [...changes, ...messages('"reasoning_content"').flatMap((all) => thoughtChanges(body, all))],
    dropped: [],
  }
}

type Members = readonly (readonly [name: string, member: Member])[]

const named = (members: Members, name: string): Member | undefined => members.findLast(([each]) => each === name)?.[1]

function without(members: Members, name: string): Change[] {
  const gone = new Set(members.flatMap(([each, member]) => (each === name ? [member] : [])))
  return removals(
    members.map(([, member]) => member),
    (member) => gone.has(member),
  )
}

const MISTRAL_ID = /^[A-Za-z0-9]{9}$/

/** The same for a call and its result. */
export const mistralId = (id: string): string => (MISTRAL_ID.test(id) ? id : sha256(id).slice(0, 9))

function idChanges(body: Buffer, members: Members): Change[] {
  const calls = named(members, 'tool_calls')
  const ids = calls ? itemsAt(body, calls.start).map((at) => named(membersAt(body, at), 'id')) : []
  return [named(members, 'tool_call_id'), ...ids].flatMap((member) => {
    const id = member && stringAt(body, member)
    return member && id !== undefined && id !== mistralId(id)
      ? [{ ...member, text: JSON.stringify(mistralId(id)) }]
      : []
  })
}

function stringAt(body: Buffer, { start, end }: Member): string | undefined {
  try {
    const value: unknown = JSON.parse(body.toString('utf8', start, end))
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined // the provider says what is wrong with it
  }
}

/** `reasoning_content` goes to the front of the content, as a chunk. */
function thoughtChanges(body: Buffer, members: Members): Change[] {
  const textOf = ({ start, end }: Member): string => body.toString('utf8', start, end)
  const thought = named(members, 'reasoning_content')
  if (!thought) return []
  const text = textOf(thought)
  const thinking =
    /^"./.test(text) && text !== '""' ? `{"type":"thinking","thinking":[{"type":"text","text":${text}}]}` : ''
  const content = named(members, 'content')
  const removed = without(members, 'reasoning_content')
  if (thinking === '') return removed
  if (!content) return [{ start: thought.at, end: thought.end, text: `"content":[${thinking}]` }]
  const said = textOf(content)
  if (said.startsWith('[')) {
    const inner = said.slice(1).trimStart()
    return [...removed, { ...content, text: `[${thinking}${inner.startsWith(']') ? '' : ','}${inner}` }]
  }
  const chunk = said === 'null' || said === '""' ? '' : `,{"type":"text","text":${said}}`
  return [...removed, { ...content, text: `[${thinking}${chunk}]` }]
}
