import type { IncomingMessage } from 'node:http'
import { secretEquals } from '../../base/hash.ts'
import { KernelError } from '../errors.ts'

/** @throws unauthorized for a header that is missing, repeated, of another scheme or wrong. Contract: kernel-1.md 1.3 */
export function requireToken({ rawHeaders }: IncomingMessage, token: string): void {
  // Node keeps only the first of several among `headers`.
  const [sent = '', ...more] = rawHeaders.filter(
    (_, i) => rawHeaders[i - 1]?.toLowerCase() === 'authorization' && i % 2 === 1,
  )
  const [, given] = /^Bearer +(\S+) *$/i.exec(sent) ?? []
  if (given === undefined || more.length > 0 || !secretEquals(given, token)) {
    throw new KernelError('unauthorized', 'unauthorized')
  }
}
