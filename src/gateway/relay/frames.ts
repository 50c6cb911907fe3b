/**
 * Where an event of a stream ends: two ends of line in a row. A CR that is the last byte so far waits for its LF. Source:
 * WHATWG HTML, server-sent events.
 */
const END = /(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r(?!\n|$))/g

/** Behind the event that begins at `from`, or -1 while its end has not come. @param text bytes as Latin-1 */
export function frameEnd(text: string, from: number, hasReturn: boolean): number {
  if (!hasReturn) {
    const at = text.indexOf('\n\n', from)
    return at < 0 ? -1 : at + 2
  }
  END.lastIndex = from
  return END.test(text) ? END.lastIndex : -1
}

/** What an event says, in UTF-8. @param raw its bytes as Latin-1 */
export function readFrame(raw: string): { readonly event: string; readonly data: string } {
  const data: string[] = []
  let event = ''
  for (const line of raw.replace(/^\u00ef\u00bb\u00bf/, '').split(/\r\n|\n|\r/)) {
    if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5))
    else if (line.startsWith('event:')) event = line.slice(6).trim()
  }
  return { event, data: Buffer.from(data.join('\n'), 'latin1').toString('utf8') }
}

const SPACE = 0x20
const QUOTE = 0x22
const COLON = 0x3a
const BACKSLASH = 0x5c

/**
 * Where the value of a member begins, at any depth; -1 for none. Inside a JSON string each quote is escaped, so that a name
 * in quotes and a colon are a name.
 * @param name with its closing quote alone: the opening one is too common to look for
 */
export function valueAt(raw: string, name: string, from = 0): number {
  for (let at = raw.indexOf(name, from); at >= 0; at = raw.indexOf(name, at + 1)) {
    if (raw.charCodeAt(at - 1) !== QUOTE) continue
    let value = skipSpaces(raw, at + name.length)
    if (raw.charCodeAt(value) !== COLON) continue
    value = skipSpaces(raw, value + 1)
    return value
  }
  return -1
}

function skipSpaces(raw: string, from: number): number {
  let at = from
  while (raw.charCodeAt(at) === SPACE) at++
  return at
}

/** Behind the closing quote of the JSON string that begins at `open`. */
export function stringEnd(raw: string, open: number): number {
  for (let quote = raw.indexOf('"', open + 1); quote >= 0; quote = raw.indexOf('"', quote + 1)) {
    let slashes = 0
    while (raw.charCodeAt(quote - 1 - slashes) === BACKSLASH) slashes++
    if (slashes % 2 === 0) return quote + 1
  }
  return raw.length
}

/** UTF-8 bytes of all strings that a member of this name holds. */
export function bytesOf(raw: string, name: string): number {
  let bytes = 0
  for (let at = valueAt(raw, name); at >= 0; at = valueAt(raw, name, at)) {
    if (raw.charCodeAt(at) !== QUOTE) continue
    const end = stringEnd(raw, at)
    bytes += end - at - 2 - escapedBytes(raw, at, end)
    at = end
  }
  return bytes
}

const ESCAPE = /\\(?:u([0-9a-fA-F]{4})|.)/g

/** How many bytes fewer a string has than its JSON: `\n` is one, `\u00e9` two, a surrogate half of four. */
function escapedBytes(raw: string, start: number, end: number): number {
  const first = raw.indexOf('\\', start)
  if (first < 0 || first >= end) return 0
  let fewer = 0
  for (const [all, hex] of raw.slice(start, end).matchAll(ESCAPE)) fewer += all.length - (hex ? utf8Bytes(hex) : 1)
  return fewer
}

function utf8Bytes(hex: string): number {
  const unit = Number.parseInt(hex, 16)
  if (unit < 0x80) return 1
  return unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 2 : 3
}
