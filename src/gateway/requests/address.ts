import { isIP } from 'node:net'
import { portOf } from '../../base/network.ts'
import { invalidRequest } from '../../platform/errors.ts'
import { allowedHosts, checkBaseUrl, isMetadata, isPublic, plainHost } from '../kinds/addresses.ts'
import { addressRefused } from '../refusals.ts'

/** What `URL` would take besides is read by programs in other ways: blanks, backslashes, an empty user, no slashes. */
const PLAIN = /^https?:\/\/[^\s/\\@]+(?:\/[^\s\\]*)?$/i

/**
 * An address that a credential names. What a name stands for is looked at when it is called.
 * @param entries `gateway.allowed_hosts`
 * @throws invalid_request 400, address_refused 422. Contract: gateway.md 10.2
 */
export function checkAddress(field: string, text: string, entries: readonly string[]): void {
  // Before the form, whose words would send people to allow http there.
  refuseMetadata(text)
  const fault =
    text.length > 2048
      ? 'must have 2048 characters at most'
      : (checkBaseUrl(text, entries) ?? (PLAIN.test(text) ? undefined : 'must read https://host/path, without blanks'))
  if (fault !== undefined) throw invalidRequest(`${field} ${fault}`, field)
  const url = new URL(text)
  const host = plainHost(url.hostname)
  if (isIP(host) === 0 || isPublic(host) || allowedHosts(entries).admits(host, portOf(url))) return
  throw addressRefused(host, { mayBeAllowed: true })
}

/** @throws address_refused 422 */
function refuseMetadata(text: string): void {
  const host = URL.canParse(text) ? plainHost(new URL(text).hostname) : ''
  if (host === 'metadata.google.internal' || isMetadata(host)) throw addressRefused(host, { mayBeAllowed: false })
}
