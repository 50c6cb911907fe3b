import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { createSecureContext, rootCertificates } from 'node:tls'
import { portOf } from '../../base/network.ts'
import { connector, type Target } from '../outbound/connect.ts'
import type { Dispatcher } from '../outbound/dispatcher.ts'
import { Outbound } from '../outbound/outbound.ts'
import { allowedHosts, isMetadata, isPublic, plainHost, type AllowedHosts } from './addresses.ts'
import { lazily } from './base.ts'
import { AddressRefusedError } from './upstream.ts'

/** The addresses of a name. */
export type Resolve = (host: string) => Promise<readonly string[]>

export interface NetworkParts {
  /** `gateway.allowed_hosts` */
  readonly allowedHosts: readonly string[]
  /** The text of `gateway.ca_file`: roots beside the usual ones. */
  readonly ca: string | undefined
  /** For connections of credentials that set none, in ms: TCP and TLS. */
  readonly connectMs: number
  /** The system's resolver when absent. */
  readonly resolve?: Resolve
}

/** The way out to providers. Every address is checked as it is connected to. Contract: gateway.md 10.2. */
export interface Network {
  /** For calls to an address that a user wrote. It waits for answers without limit: who calls sets the limits. */
  dispatcher(connectMs?: number): Dispatcher
  /** For the fixed calls of signing only: metadata services may be reached. */
  fixed(): Dispatcher
  /** Whether `gateway.allowed_hosts` names the host of this URL. */
  isAllowed(url: string): boolean
  /** Ends all connections. */
  close(): void
}

const FIXED_CONNECT_MS = 2000

const systemResolve: Resolve = async (host) => (await lookup(host, { all: true })).map(({ address }) => address)

export function createNetwork({
  allowedHosts: entries,
  ca,
  connectMs,
  resolve = systemResolve,
}: NetworkParts): Network {
  const allowed = allowedHosts(entries)
  // Made once: reading some 140 roots at each connection would take longer than its handshake.
  const secureContext = lazily(() => createSecureContext(ca === undefined ? {} : { ca: [...rootCertificates, ca] }))
  const ways = new Map<number, Outbound>()
  const open = (timeoutMs: number, find: (target: Target) => Promise<readonly string[]>): Outbound =>
    new Outbound({
      connectMs: timeoutMs,
      connector: (origin) => {
        const target = targetOf(origin)
        return connector({ target, addresses: () => find(target), secureContext })
      },
    })
  const fixed = open(FIXED_CONNECT_MS, ({ host }) => systemResolve(host))
  return {
    dispatcher: (asked = connectMs) => {
      const timeoutMs = rounded(asked)
      const way = ways.get(timeoutMs) ?? open(timeoutMs, (target) => addressesOf(target, allowed, resolve))
      ways.set(timeoutMs, way)
      return way
    },
    fixed: () => fixed,
    isAllowed: (url) => {
      const { host, port } = targetOf(new URL(url))
      return allowed.admits(host, port)
    },
    close: () => {
      for (const way of [...ways.values(), fixed]) way.destroy()
    },
  }
}

/** To two digits, upwards: the number of ways stays below some 500, whatever credentials ask for. */
function rounded(ms: number): number {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(ms)) - 1)
  return Math.ceil(ms / step) * step
}

const targetOf = (url: URL): Target => ({
  host: plainHost(url.hostname),
  port: portOf(url),
  secure: url.protocol === 'https:',
})

/** The addresses of a target, when every one of them may be called. @throws AddressRefusedError */
async function addressesOf(target: Target, allowed: AllowedHosts, resolve: Resolve): Promise<readonly string[]> {
  const { host, port, secure } = target
  if (host === 'metadata.google.internal') throw new AddressRefusedError(host)
  const isAllowed = allowed.admits(host, port)
  if (!secure && !isAllowed) throw new AddressRefusedError(host)
  const addresses = isIP(host) === 0 ? await resolve(host) : [host]
  for (const address of addresses) {
    const mayCall = isAllowed || isPublic(address) || allowed.admits(address, port)
    if (isMetadata(address) || !mayCall) throw new AddressRefusedError(host)
  }
  return addresses
}
