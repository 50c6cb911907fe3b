import type { IncomingHttpHeaders } from 'node:http'
import type { IdSource } from '../base/ids.ts'

const PRINTABLE = /^[\x20-\x7e]{1,128}$/

/** The id that a request brings, or a new one where it brings none that may be told again. */
export function requestIdOf({ 'x-request-id': sent }: IncomingHttpHeaders, ids: IdSource): string {
  return typeof sent === 'string' && PRINTABLE.test(sent) ? sent : ids('req_')
}
