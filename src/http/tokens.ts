import type { IncomingMessage } from 'node:http'

const BEARER = /^Bearer +(\S+) *$/i

/** The token of each `Authorization` header, of which `headers` keeps only the first; undefined for what is no Bearer. */
export function bearersOf({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>): (string | undefined)[] {
  const found: (string | undefined)[] = []
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]
    if (name?.length === 13 && name.toLowerCase() === 'authorization')
      found.push(BEARER.exec(rawHeaders[at + 1] ?? '')?.[1])
  }
  return found
}

/** The tokens that cookies named `session` bring. */
export const sessionsIn = (cookie = ''): string[] =>
  cookie.split(';').flatMap((pair) => /^\s*session=(.+?)\s*$/.exec(pair)?.[1] ?? [])
