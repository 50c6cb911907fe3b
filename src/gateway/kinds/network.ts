import { lookup } from 'node:dns/promises'
import { createRequire } from 'node:module'
import { isIP, type LookupFunction } from 'node:net'
import { createSecureContext, rootCertificates } from 'node:tls'
import type { Agent, buildConnector, Dispatcher } from 'undici'
import type * as Undici from 'undici'
import { errorText } from '../../base/errors.ts'
import { portOf } from '../../base/network.ts'
import { allowedHosts, isMetadata, isPublic, plainHost, type AllowedHosts } from './addresses.ts'
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
  close(): Promise<void>
}

/** Connections stay open so long: longer than the pauses of a busy gateway, shorter than most peers keep them. */
const KEEP_ALIVE_MS = 30_000
const KEEP_ALIVE_MOST_MS = 300_000
const FIXED_CONNECT_MS = 2000

const systemResolve: Resolve = async (host) => (await lookup(host, { all: true })).map(({ address }) => address)

/** Loaded with the first provider: it takes 30 ms, for which a server that calls none has no use. */
const undici = (): typeof Undici => createRequire(import.meta.url)('undici')

/** Made once: reading some 140 roots at each connection would take longer than its handshake. */
const trustOf = (ca: string | undefined) => ({
  secureContext: createSecureContext(ca === undefined ? {} : { ca: [...rootCertificates, ca] }),
  rejectUnauthorized: true,
  autoSelectFamily: true,
})
type Trust = ReturnType<typeof trustOf>

export function createNetwork({
  allowedHosts: entries,
  ca,
  connectMs,
  resolve = systemResolve,
}: NetworkParts): Network {
  const allowed = allowedHosts(entries)
  const agents = new Map<number, Agent>()
  let trust: Trust | undefined
  let fixed: Agent | undefined

  const createAgent = (timeout: number): Agent => {
    const { Agent, Pool, buildConnector } = undici()
    trust ??= trustOf(ca)
    const options = { ...trust, timeout }
    return new Agent({
      factory: (origin) =>
        new Pool(origin, {
          pipelining: 1,
          keepAliveTimeout: KEEP_ALIVE_MS,
          keepAliveMaxTimeout: KEEP_ALIVE_MOST_MS,
          headersTimeout: 0,
          bodyTimeout: 0,
          connect: guarded(targetOf(new URL(origin)), allowed, resolve, (lookUp) =>
            buildConnector({ ...options, lookup: lookUp }),
          ),
        }),
    })
  }
  return {
    dispatcher: (asked = connectMs) => {
      const timeout = rounded(asked)
      const agent = agents.get(timeout) ?? createAgent(timeout)
      agents.set(timeout, agent)
      return agent
    },
    fixed: () => {
      trust ??= trustOf(ca)
      return (fixed ??= new (undici().Agent)({ connect: { ...trust, timeout: FIXED_CONNECT_MS } }))
    },
    isAllowed: (url) => {
      const { host, port } = targetOf(new URL(url))
      return allowed.admits(host, port)
    },
    close: async () => {
      await Promise.all([...agents.values(), ...(fixed ? [fixed] : [])].map((agent) => agent.destroy()))
    },
  }
}

/** To two digits, upwards: the number of agents stays below some 500, whatever credentials ask for. */
function rounded(ms: number): number {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(ms)) - 1)
  return Math.ceil(ms / step) * step
}

interface Target {
  readonly host: string
  readonly port: number
  readonly secure: boolean
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

/** Connects to one origin: what its name resolves to is checked, and nothing else is connected to. */
function guarded(
  target: Target,
  allowed: AllowedHosts,
  resolve: Resolve,
  connector: (lookUp: LookupFunction) => buildConnector.connector,
): buildConnector.connector {
  const addresses = (): Promise<readonly string[]> => addressesOf(target, allowed, resolve)
  const lookUp: LookupFunction = (_host, { all }, callback) => void tell(addresses, all === true, callback)
  const connect = connector(lookUp)
  // An address in figures is never looked up.
  if (isIP(target.host) !== 0) return (to, callback) => void checkFirst(addresses, connect, to, callback)
  return connect
}

async function tell(
  addresses: () => Promise<readonly string[]>,
  all: boolean,
  callback: Parameters<LookupFunction>[2],
): Promise<void> {
  try {
    const entries = (await addresses()).map((address) => ({ address, family: isIP(address) }))
    const [one] = entries
    if (one === undefined) throw new Error('the name has no address')
    if (all) callback(null, entries)
    else callback(null, one.address, one.family)
  } catch (error) {
    callback(asError(error), '')
  }
}

async function checkFirst(
  check: () => Promise<unknown>,
  connect: buildConnector.connector,
  to: buildConnector.Options,
  callback: buildConnector.Callback,
): Promise<void> {
  try {
    await check()
    connect(to, callback)
  } catch (error) {
    callback(asError(error), null)
  }
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(errorText(error)))
