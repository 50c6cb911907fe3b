/** A stretch of a text, in UTF-16 units: `start` inclusive, `end` exclusive. */
export interface Span {
  start: number
  end: number
}

/** The scans below are loops over code units: on 8 MiB they take some 20 ms, where regular expressions backtrack. */

export const isSpace = (code: number): boolean =>
  code === 32 || (code >= 9 && code <= 13) || (code > 127 && /\s/.test(String.fromCharCode(code)))

/** Index of the first code unit that is not white space, or `end`. */
export function skipSpace(text: string, start: number, end: number): number {
  let at = start
  while (at < end && isSpace(text.charCodeAt(at))) at++
  return at
}

export const isBlank = (text: string, start = 0, end = text.length): boolean => skipSpace(text, start, end) >= end

/** Index of the line feed that ends the line at `from`, or `end`. */
export function lineEnd(text: string, from: number, end: number): number {
  let at = from
  while (at < end && text.charCodeAt(at) !== 10) at++
  return at
}

/** `end` without the carriage return of a CRLF before it. */
export const withoutReturn = (text: string, start: number, end: number): number =>
  end > start && text.charCodeAt(end - 1) === 13 ? end - 1 : end

export const isLowSurrogate = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff

/** UTF-8 bytes that a code unit stands for; the halves of a surrogate pair are 2 each. */
export const utf8Size = (code: number): number =>
  code < 0x80 ? 1 : code < 0x800 || (code >= 0xd800 && code <= 0xdfff) ? 2 : 3

export function utf8Length(text: string, start = 0, end = text.length): number {
  let bytes = 0
  for (let at = start; at < end; at++) bytes += utf8Size(text.charCodeAt(at))
  return bytes
}
