import type { IncomingMessage } from 'node:http'
import { isLoopback } from '../base/network.ts'

/** Whether a Host header names what reaches only this machine. */
export const isLoopbackHost = (host: string): boolean => isLoopback(host.replace(/:\d+$/, ''))

/** An allow-list of origins: compared ignoring case, `*` lists all. */
export const isListed = (origin: string, allowed: readonly string[]): boolean =>
  allowed.some((entry) => entry === '*' || entry.toLowerCase() === origin.toLowerCase())

/** Whether a page of this origin may ask: it is the server's own, by its Host header, or listed. */
export const isTrustedOrigin = (origin: string, host: string, allowed: readonly string[]): boolean =>
  isListed(origin, allowed) || origin.replace(/^https?:\/\//i, '').toLowerCase() === host.toLowerCase()

/** Why a listener without a key refuses a request: a page of another site in the user's browser must not reach it. */
export function keylessFault({ method, headers }: IncomingMessage, allowed: readonly string[]): string | undefined {
  const { host = '', origin, upgrade } = headers
  if (!isLoopbackHost(host)) return 'without an API key this server answers only to a loopback Host'
  const changes = (method !== 'GET' && method !== 'HEAD') || upgrade !== undefined
  return changes && origin !== undefined && !isTrustedOrigin(origin, host, allowed)
    ? 'without an API key this server refuses requests from other origins'
    : undefined
}

/** Whether a body is JSON: a page of another site cannot send that without asking first. @param type `Content-Type` */
export const isJson = (type = ''): boolean => /^application\/json\s*(?:;|$)/i.test(type)
