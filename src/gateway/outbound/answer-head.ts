import { NetworkError } from './dispatcher.ts'

/** The head of an answer, and what it says of the rest. */
export interface AnswerHead {
  readonly status: number
  /** Names, in small letters, and values in turn. */
  readonly fields: readonly string[]
  /** In bytes, or how else its end is found. */
  readonly body: number | 'chunked' | 'until_close'
  /** Whether the connection may serve another request. */
  readonly keepsOpen: boolean
  /** How long the other side says that it keeps an idle connection, in ms. */
  readonly keepAliveMs: number | undefined
}

/** One for all lines: a test of each would take twice as long. */
const HEAD =
  /^HTTP\/1\.[01] [1-5]\d\d(?: [\t\x20-\x7e\x80-\xff]*)?(?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*)*$/
const MINOR_AT = 'HTTP/1.'.length
const STATUS_AT = 'HTTP/1.1 '.length

/**
 * What the standard leaves to the taste of a reader (two lengths, a length beside chunks, folded lines, bare line feeds) is
 * refused: who reads it otherwise would see another answer. Source: RFC 9112, sections 4 to 6.
 * @param text from the status to the last field, without the blank line
 * @throws NetworkError `EPROTO`
 */
export function readHead(text: string): AnswerHead {
  if (!HEAD.test(text)) throw broken('its head is none')
  const status = Number(text.slice(STATUS_AT, STATUS_AT + 3))
  if (status === 101) throw broken('it changes the protocol')
  const fields = fieldsOf(text)
  let length: number | undefined
  let isChunked = false
  let keepsOpen = text[MINOR_AT] === '1'
  let keepAliveMs: number | undefined
  for (let i = 0; i < fields.length; i += 2) {
    const [name = '', value = ''] = [fields[i], fields[i + 1]]
    switch (name) {
      case 'content-length':
        if (length !== undefined || !/^\d{1,15}$/.test(value)) throw broken('its length is none')
        length = Number(value)
        break
      case 'transfer-encoding':
        if (isChunked || value.toLowerCase() !== 'chunked') throw broken('its transfer coding is not supported')
        isChunked = true
        break
      case 'connection':
        if (/\bclose\b/i.test(value)) keepsOpen = false
        break
      case 'keep-alive':
        keepAliveMs = millisecondsOf(value)
    }
  }
  if (isChunked && length !== undefined) throw broken('it has a length beside chunks')
  const isEmpty = status < 200 || status === 204 || status === 304
  const body = isEmpty ? 0 : isChunked ? 'chunked' : (length ?? 'until_close')
  return { status, fields, body, keepsOpen: keepsOpen && body !== 'until_close', keepAliveMs }
}

/** Names, in small letters, and values in turn. */
function fieldsOf(head: string): string[] {
  const fields: string[] = []
  for (let at = head.indexOf('\r\n'); at >= 0;) {
    const colon = head.indexOf(':', at)
    const end = head.indexOf('\r\n', colon)
    fields.push(head.slice(at + 2, colon).toLowerCase(), head.slice(colon + 1, end < 0 ? head.length : end).trim())
    at = end
  }
  return fields
}

/** Of `timeout=5, max=100`. */
function millisecondsOf(keepAlive: string): number | undefined {
  const seconds = /\btimeout=(\d{1,6})\b/i.exec(keepAlive)?.[1]
  return seconds === undefined ? undefined : Number(seconds) * 1000
}

/** The answer is none that a reader of HTTP/1.1 could be sure of. */
export const broken = (what: string): NetworkError => new NetworkError('EPROTO', `the answer is not HTTP/1.1: ${what}`)

/** By name; of one that comes twice, the last. */
export function recordOf(fields: readonly string[]): Record<string, string> {
  const record: Record<string, string> = {}
  for (let i = 0; i + 1 < fields.length; i += 2) record[fields[i] ?? ''] = fields[i + 1] ?? ''
  return record
}
