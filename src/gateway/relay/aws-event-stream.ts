import { crc32 } from 'node:zlib'

/** A message of an event stream. Source: AWS, event stream encoding. */
export interface EventMessage {
  /** Headers of type string by name, `:event-type` and `:exception-type` among them. */
  readonly headers: ReadonlyMap<string, string>
  readonly payload: string
}

/** Bytes that are no event stream, or were changed on the way. */
export class EventStreamError extends Error {
  override readonly name = 'EventStreamError'
}

/** Total length, length of the headers, their checksum; behind the payload the checksum of all. */
const PRELUDE = 12
const CHECKSUM = 4
const MAX_MESSAGE = 16 * 1024 * 1024
const STRING = 7
/** Bytes of the values of header types that are not read; 6 and 7 begin with a length. */
const SIZES: Readonly<Record<number, number>> = { 0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16 }

/** Reads messages from bytes split anywhere. Contract: gateway.md 5.2. */
export class EventStreamReader {
  /** Of a message that is not whole; joined when so many are there as are needed to go on. */
  #pieces: Buffer[] = []
  #bytes = 0
  #needed = PRELUDE

  /** The messages that these bytes complete. @throws EventStreamError */
  read(chunk: Buffer): EventMessage[] {
    this.#pieces.push(chunk)
    this.#bytes += chunk.length
    if (this.#bytes < this.#needed) return []
    let bytes = this.#pieces.length > 1 ? Buffer.concat(this.#pieces) : chunk
    const messages: EventMessage[] = []
    let length = lengthOf(bytes)
    for (; length !== undefined && bytes.length >= length; length = lengthOf(bytes)) {
      messages.push(readMessage(bytes.subarray(0, length)))
      bytes = bytes.subarray(length)
    }
    this.#pieces = bytes.length > 0 ? [bytes] : []
    this.#bytes = bytes.length
    this.#needed = length ?? PRELUDE
    return messages
  }
}

function lengthOf(bytes: Buffer): number | undefined {
  if (bytes.length < PRELUDE) return undefined
  if (crc32(bytes.subarray(0, 8)) !== bytes.readUInt32BE(8)) throw new EventStreamError('the lengths are damaged')
  const length = bytes.readUInt32BE(0)
  if (length < PRELUDE + bytes.readUInt32BE(4) + CHECKSUM || length > MAX_MESSAGE) {
    throw new EventStreamError('the lengths do not fit')
  }
  return length
}

function readMessage(bytes: Buffer): EventMessage {
  const end = bytes.length - CHECKSUM
  if (crc32(bytes.subarray(0, end)) !== bytes.readUInt32BE(end)) throw new EventStreamError('a message is damaged')
  const headersEnd = PRELUDE + bytes.readUInt32BE(4)
  const headers = readHeaders(bytes.subarray(PRELUDE, headersEnd))
  return { headers, payload: bytes.toString('utf8', headersEnd, end) }
}

function readHeaders(bytes: Buffer): Map<string, string> {
  const headers = new Map<string, string>()
  try {
    for (let at = 0; at < bytes.length;) {
      const nameEnd = at + 1 + bytes.readUInt8(at)
      const name = bytes.toString('utf8', at + 1, nameEnd)
      const type = bytes.readUInt8(nameEnd)
      const fixed = SIZES[type]
      const start = fixed === undefined ? nameEnd + 3 : nameEnd + 1
      const end = start + (fixed ?? bytes.readUInt16BE(nameEnd + 1))
      if (type === STRING) headers.set(name, bytes.toString('utf8', start, end))
      at = end
    }
  } catch (error) {
    throw new EventStreamError('the headers of a message do not fit', { cause: error })
  }
  return headers
}
