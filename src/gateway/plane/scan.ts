import { GatewayError } from '../errors.ts'
import type { Member } from '../relay/body.ts'

const ONCE: ReadonlySet<string> = new Set(['model', 'stream'])
const MAX_DEPTH = 128
const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_LIST = 0x5b
const BACKSLASH = 0x5c
const CLOSE_LIST = 0x5d
const OPEN_MAP = 0x7b
const CLOSE_MAP = 0x7d
const SCALAR = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/

/**
 * The top-level members of a JSON object, found in one pass without building it: strings are skipped by a native search, so
 * that a long prompt costs little more than a copy. `messages` must be a list of one message or more, each with a role, and
 * with content unless it carries calls; what else is inside values is left to whoever parses it, but for quotes, brackets
 * and depth.
 * @throws GatewayError 400 for what is no object, deeper than 128, names `model` or `stream` twice in any escaping, or holds
 * messages that are none. Contract: gateway.md 3.2, 10.3
 */
export function scanBody(body: Buffer): ReadonlyMap<string, Member> {
  const members = new Map<string, Member>()
  const start = skipSpace(body, 0)
  if (body[start] !== OPEN_MAP) throw new GatewayError('invalid_json', 'the body is not a JSON object')
  const end = readMap(body, start, (name, at, valueAt) => {
    const earlier = members.get(name)
    if (earlier && ONCE.has(name)) throw invalid(`${name} is given twice`, name)
    const valueEnd = name === 'messages' ? readMessages(body, valueAt) : skipValue(body, valueAt, 1)
    members.set(name, earlier ? { at, start: valueAt, end: valueEnd, earlier } : { at, start: valueAt, end: valueEnd })
    return valueEnd
  })
  if (skipSpace(body, end) !== body.length) throw broken(end)
  return members
}

/** From an opening brace to behind the closing one. @param read takes a member and says where its value ends */
function readMap(body: Buffer, from: number, read: (name: string, at: number, valueAt: number) => number): number {
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

function readMessages(body: Buffer, from: number): number {
  if (body[from] !== OPEN_LIST) throw invalid('messages must be a list', 'messages')
  let at = skipSpace(body, from + 1)
  if (body[at] === CLOSE_LIST) throw invalid('messages must not be empty', 'messages')
  for (let index = 0; ; index++) {
    if (body[at] !== OPEN_MAP) throw invalid(`messages[${index}] must be an object`, `messages[${index}]`)
    at = skipSpace(body, readMessage(body, at, index))
    if (body[at] === CLOSE_LIST) return at + 1
    if (body[at] !== COMMA) throw broken(at)
    at = skipSpace(body, at + 1)
  }
}

function readMessage(body: Buffer, from: number, index: number): number {
  let hasRole = false
  let hasContent = false
  const end = readMap(body, from, (name, _at, valueAt) => {
    if (name === 'role') hasRole = body[valueAt] === QUOTE
    else if (name === 'content' || name === 'tool_calls' || name === 'function_call') hasContent = true
    return skipValue(body, valueAt, 3)
  })
  if (!hasRole) throw invalid(`messages[${index}].role must be a string`, `messages[${index}].role`)
  if (!hasContent) {
    const param = `messages[${index}].content`
    throw new GatewayError('missing_required_parameter', `${param} is missing`, { param })
  }
  return end
}

/** From the first byte of a value to behind its last. @param depth of what it stands in */
function skipValue(body: Buffer, from: number, depth: number): number {
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
    }
  }
  throw broken(body.length)
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

function skipScalar(body: Buffer, from: number): number {
  let at = from
  while (at < body.length && body[at] !== COMMA && body[at] !== CLOSE_MAP && (body[at] ?? 0) > 0x20) at++
  if (!SCALAR.test(body.toString('latin1', from, Math.min(at, from + 400)))) throw broken(from)
  return at
}

function skipSpace(body: Buffer, from: number): number {
  let at = from
  for (let byte = body[at]; byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09; byte = body[at]) at++
  return at
}

function nameOf(body: Buffer, start: number, end: number): string {
  const text = body.toString('utf8', start + 1, end - 1)
  if (!text.includes('\\')) return text
  try {
    return String(JSON.parse(`"${text}"`))
  } catch {
    throw broken(start)
  }
}

const broken = (at: number): GatewayError =>
  new GatewayError('invalid_json', `the body is not valid JSON, at byte ${at}`)

const invalid = (message: string, param: string): GatewayError => new GatewayError('invalid_value', message, { param })
