import { GatewayError } from '../errors.ts'

/** Where a member stands: its value's bytes are `[start, end)`. */
export interface Member {
  /** Of its name's opening quote. */
  readonly at: number
  readonly start: number
  readonly end: number
  /** The one of the same name before it. */
  readonly earlier?: Member
}

/** Bytes to put in place of `[start, end)`. */
export interface Change {
  readonly start: number
  readonly end: number
  readonly text: string
}

const MAX_DEPTH = 128
const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_LIST = 0x5b
const BACKSLASH = 0x5c
const CLOSE_LIST = 0x5d
const OPEN_MAP = 0x7b
const CLOSE_MAP = 0x7d

/**
 * The top-level members of a JSON object by name, found without building it: strings are skipped by a native search, so
 * that a long prompt costs little more than a copy. What is inside values is left to whoever parses it, but for quotes,
 * brackets and depth.
 * @param skip says where a value ends; it may look closer at some
 * @throws GatewayError 400 for what is no object, deeper than 128, or names a member of `once` twice, in any escaping.
 *   Contract: gateway.md 3.2, 10.3
 */
export function readMembers(
  body: Buffer,
  once: ReadonlySet<string>,
  skip: (name: string, start: number) => number = (_name, start) => skipValue(body, start, 1),
): Map<string, Member> {
  const open = skipSpace(body, 0)
  if (body[open] !== OPEN_MAP) throw new GatewayError('invalid_json', 'the body is not a JSON object')
  const members = new Map<string, Member>()
  const behind = readMap(body, open, (name, at, start) => {
    const earlier = members.get(name)
    if (earlier && once.has(name)) throw new GatewayError('invalid_value', `${name} is given twice`, { param: name })
    const end = skip(name, start)
    members.set(name, earlier ? { at, start, end, earlier } : { at, start, end })
    return end
  })
  if (skipSpace(body, behind) !== body.length) throw broken(behind)
  return members
}

/** The members of the object that begins at `start` of a body that `readMembers` has passed, in order; none of another value. */
export function membersAt(body: Buffer, start: number): [name: string, member: Member][] {
  const members: [string, Member][] = []
  if (body[start] !== OPEN_MAP) return members
  readMap(body, start, (name, at, valueAt) => {
    const end = skipValue(body, valueAt)
    members.push([name, { at, start: valueAt, end }])
    return end
  })
  return members
}

/** Where the items of the list that begins at `start` begin; none of another value. */
export function itemsAt(body: Buffer, start: number): number[] {
  const items: number[] = []
  if (body[start] !== OPEN_LIST) return items
  let at = skipSpace(body, start + 1)
  while (body[at] !== CLOSE_LIST) {
    items.push(at)
    at = skipSpace(body, skipValue(body, at))
    if (body[at] === COMMA) at = skipSpace(body, at + 1)
    else if (body[at] !== CLOSE_LIST) throw broken(at)
  }
  return items
}

/** Takes members out of an object, each with the comma that parts it from the others. @param all of the object, in order */
export function removals(all: readonly Member[], isRemoved: (member: Member) => boolean): Change[] {
  const changes: Change[] = []
  let kept: Member | undefined
  for (const [i, member] of all.entries()) {
    if (!isRemoved(member)) kept = member
    else if (kept) changes.push({ start: all[i - 1]?.end ?? 0, end: member.end, text: '' })
    else changes.push({ start: member.at, end: all[i + 1]?.at ?? member.end, text: '' })
  }
  return changes
}

/** Puts texts in the place of bytes, and members that are not there yet behind the opening brace. */
export function splice(body: Buffer, changes: readonly Change[], added = ''): Buffer {
  const parts: Uint8Array[] = []
  let at = 0
  if (added !== '') {
    at = body.indexOf(OPEN_MAP) + 1
    const isEmpty = body[skipSpace(body, at)] === CLOSE_MAP
    parts.push(body.subarray(0, at), Buffer.from(isEmpty ? added : `${added},`))
  }
  for (const { start, end, text } of [...changes].sort((a, b) => a.start - b.start)) {
    parts.push(body.subarray(at, start), Buffer.from(text))
    at = end
  }
  parts.push(body.subarray(at))
  return Buffer.concat(parts)
}

/** A 400 for what is no JSON at a place. */
export const broken = (at: number): GatewayError =>
  new GatewayError('invalid_json', `the body is not valid JSON, at byte ${at}`)

export function skipSpace(body: Buffer, from: number): number {
  let at = from
  for (let byte = body[at]; byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09; byte = body[at]) at++
  return at
}

/** From the opening quote to behind the closing one. */
function skipString(body: Buffer, from: number): number {
  for (let at = from + 1; ;) {
    const quote = body.indexOf(QUOTE, at)
    if (quote < 0) throw broken(body.length)
    let slashes = 0
    while (body[quote - 1 - slashes] === BACKSLASH) slashes++
    if (slashes % 2 === 0) return quote + 1
    at = quote + 1
  }
}

/** From the opening brace to behind the closing one. @param read takes a member and says where its value ends */
export function readMap(body: Buffer, from: number, read: (name: string, at: number, start: number) => number): number {
  let at = skipSpace(body, from + 1)
  if (body[at] === CLOSE_MAP) return at + 1
  for (;;) {
    if (body[at] !== QUOTE) throw broken(at)
    const nameEnd = skipString(body, at)
    const colon = skipSpace(body, nameEnd)
    if (body[colon] !== COLON) throw broken(colon)
    at = skipSpace(body, read(nameOf(body, at, nameEnd), at, skipSpace(body, colon + 1)))
    if (body[at] === CLOSE_MAP) return at + 1
    if (body[at] !== COMMA) throw broken(at)
    at = skipSpace(body, at + 1)
  }
}

/** From the first byte of a value to behind its last. @param depth of what it stands in, where that counts. @throws GatewayError */
export function skipValue(body: Buffer, from: number, depth = 0): number {
  const first = body[from]
  if (first === QUOTE) return skipString(body, from)
  if (first !== OPEN_MAP && first !== OPEN_LIST) return skipScalar(body, from)
  const open: boolean[] = [] // the brackets that wait for their end: true is a map's
  for (let at = from; at < body.length; at++) {
    const byte = body[at]
    if (byte === QUOTE) at = skipString(body, at) - 1
    else if (byte === OPEN_MAP || byte === OPEN_LIST) {
      if (open.length + depth >= MAX_DEPTH) {
        throw new GatewayError('invalid_json', `the body is deeper than ${MAX_DEPTH}`)
      }
      open.push(byte === OPEN_MAP)
    } else if (byte === CLOSE_MAP || byte === CLOSE_LIST) {
      if (open.pop() !== (byte === CLOSE_MAP)) throw broken(at)
      if (open.length === 0) return at + 1
    } else if (byte === undefined || OUTSIDE[byte] !== 1) throw broken(at)
  }
  throw broken(body.length)
}

/**
 * What may stand outside of strings and brackets, by its byte: in what some providers take for a comment, or quote by other
 * marks, they would read other members than are read here.
 */
const OUTSIDE = new Uint8Array(256)
for (const byte of Buffer.from(' \t\r\n:,+-.0123456789Etruefalsn')) OUTSIDE[byte] = 1

const SCALAR = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/

function skipScalar(body: Buffer, from: number): number {
  let at = from
  while (at < body.length && body[at] !== COMMA && body[at] !== CLOSE_MAP && (body[at] ?? 0) > 0x20) at++
  if (!SCALAR.test(body.toString('latin1', from, Math.min(at, from + 400)))) throw broken(from)
  return at
}

/** Names that nearly every body has: to know one again takes a tenth of the time that reading it takes. */
const USUAL = ['model', 'messages', 'stream', 'role', 'content', 'max_tokens', 'temperature', 'tools', 'type', 'text']
/** By their length. */
const usual: { readonly name: string; readonly bytes: Buffer }[][] = Array.from({ length: 12 }, () => [])
for (const name of USUAL) usual[name.length]?.push({ name, bytes: Buffer.from(name) })

function usualName(body: Buffer, start: number, end: number): string | undefined {
  for (const { name, bytes } of usual[end - start] ?? NONE) {
    let same = 0
    while (same < bytes.length && body[start + same] === bytes[same]) same++
    if (same === bytes.length) return name
  }
  return undefined
}

const NONE: never[] = []

/** Between the quotes. */
function nameOf(body: Buffer, start: number, end: number): string {
  const known = usualName(body, start + 1, end - 1)
  if (known !== undefined) return known
  const text = body.toString('utf8', start + 1, end - 1)
  if (!text.includes('\\')) return text
  try {
    return String(JSON.parse(`"${text}"`))
  } catch {
    throw broken(start)
  }
}
