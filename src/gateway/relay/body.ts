/** A request body that is no JSON object, or judged differently by another parser. Contract: gateway.md 3.2, 10.3. */
export class BodyError extends Error {
  override readonly name = 'BodyError'
  readonly code: 'invalid_json' | 'invalid_value'
  readonly param: string | undefined

  constructor(code: BodyError['code'], message: string, param?: string) {
    super(message)
    this.code = code
    this.param = param
  }
}

/** Where a top-level member stands: its value's bytes are `[start, end)`. */
export interface Member {
  readonly start: number
  readonly end: number
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
 * @throws BodyError for what is no object, deeper than 128, or names a member of `once` twice, in any escaping.
 */
export function readMembers(body: Buffer, once: ReadonlySet<string>): Map<string, Member> {
  const members = new Map<string, Member>()
  let at = skipSpace(body, 0)
  if (body[at] !== OPEN_MAP) throw new BodyError('invalid_json', 'the body is not a JSON object')
  at = skipSpace(body, at + 1)
  if (body[at] !== CLOSE_MAP) {
    for (;;) {
      if (body[at] !== QUOTE) throw broken(at)
      const nameEnd = skipString(body, at)
      const name = nameOf(body, at, nameEnd)
      at = skipSpace(body, nameEnd)
      if (body[at] !== COLON) throw broken(at)
      const start = skipSpace(body, at + 1)
      const end = skipValue(body, start)
      if (members.has(name) && once.has(name)) throw new BodyError('invalid_value', `${name} is given twice`, name)
      members.set(name, { start, end })
      at = skipSpace(body, end)
      if (body[at] === CLOSE_MAP) break
      if (body[at] !== COMMA) throw broken(at)
      at = skipSpace(body, at + 1)
    }
  }
  if (skipSpace(body, at + 1) !== body.length) throw broken(at + 1)
  return members
}

/** Replaces the bytes of values, and puts members that are not there yet behind the opening brace. */
export function splice(body: Buffer, changes: readonly (Member & { text: string })[], added = ''): Buffer {
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

const broken = (at: number): BodyError => new BodyError('invalid_json', `the body is not valid JSON, at byte ${at}`)

function skipSpace(body: Buffer, from: number): number {
  let at = from
  for (let byte = body[at]; byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09; byte = body[at]) at++
  return at
}

/** From the opening quote to behind the closing one. */
function skipString(body: Buffer, from: number): number {
  let at = from + 1
  for (;;) {
    const quote = body.indexOf(QUOTE, at)
    if (quote < 0) throw broken(body.length)
    let slashes = 0
    while (quote - 1 - slashes > from && body[quote - 1 - slashes] === BACKSLASH) slashes++
    if (slashes % 2 === 0) return quote + 1
    at = quote + 1
  }
}

/** From the first byte of a value to behind its last. */
function skipValue(body: Buffer, from: number): number {
  const first = body[from]
  if (first === QUOTE) return skipString(body, from)
  if (first !== OPEN_MAP && first !== OPEN_LIST) return skipScalar(body, from)
  const open: boolean[] = [] // the brackets that wait for their end: true is a map's
  for (let at = from; at < body.length; at++) {
    const byte = body[at]
    if (byte === QUOTE) at = skipString(body, at) - 1
    else if (byte === OPEN_MAP || byte === OPEN_LIST) {
      if (open.length >= MAX_DEPTH - 1) throw new BodyError('invalid_json', `the body is deeper than ${MAX_DEPTH}`)
      open.push(byte === OPEN_MAP)
    } else if (byte === CLOSE_MAP || byte === CLOSE_LIST) {
      if (open.pop() !== (byte === CLOSE_MAP)) throw broken(at)
      if (open.length === 0) return at + 1
    }
  }
  throw broken(body.length)
}

const SCALAR = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/

function skipScalar(body: Buffer, from: number): number {
  let at = from
  while (at < body.length && body[at] !== COMMA && body[at] !== CLOSE_MAP && (body[at] ?? 0) > 0x20) at++
  if (!SCALAR.test(body.toString('latin1', from, Math.min(at, from + 400)))) throw broken(from)
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
