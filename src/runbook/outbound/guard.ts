import { createConnection, isIP, type LookupFunction, type Socket } from 'node:net'
import { errorText } from '../../base/errors.ts'
import { NodeError } from '../errors.ts'
import { isAlwaysRefused, isPrivate } from './addresses.ts'

export interface GuardOptions {
  /** Refuses every address that is not public. */
  readonly denyPrivateNetworks?: boolean
  /** `host` or `host:port`, exempt from `denyPrivateNetworks`. */
  readonly allowHosts?: readonly string[]
}

export type Resolve = (host: string) => Promise<readonly string[]>

const METADATA_NAMES = new Set(['metadata.google.internal'])

const systemResolve: Resolve = async (host) => {
  // loaded with the first name; `import()` fails now and then in code that `vm` has compiled
  const { lookup } = process.getBuiltinModule('node:dns').promises
  return (await lookup(host, { all: true })).map(({ address }) => address)
}

/** Decides on the addresses that nodes connect to. Contract: runbook.md 5.1. */
export class Guard {
  private readonly options: GuardOptions

  private readonly resolve: Resolve

  constructor({ resolve = systemResolve, ...options }: GuardOptions & { resolve?: Resolve }) {
    this.options = options
    this.resolve = resolve
  }

  /** The addresses of a host, all of them allowed. @throws NodeError address_refused, network_error */
  async addresses(host: string, port: number): Promise<readonly string[]> {
    const name = host.toLowerCase().replace(/^\[|\]$|\.$/g, '')
    if (METADATA_NAMES.has(name)) throw refused(name)
    const addresses = isIP(name) ? [name] : await this.resolved(name)
    for (const address of addresses) {
      if (isAlwaysRefused(address)) throw refused(name)
      if (this.options.denyPrivateNetworks && isPrivate(address) && !this.isAllowed(name, port)) throw refused(name)
    }
    return addresses
  }

  /** A socket that connects to one of the allowed addresses only. */
  async connect(host: string, port: number, signal: AbortSignal): Promise<Socket> {
    const addresses = await this.addresses(host, port)
    return new Promise((resolve, reject) => {
      const name = host.replace(/^\[|\]$/g, '')
      const socket = createConnection({ host: name, port, lookup: lookupOf(addresses), autoSelectFamily: true })
      const abort = (): void => void socket.destroy(new NodeError('cancelled', 'the connection was given up'))
      signal.addEventListener('abort', abort)
      socket.once('close', () => signal.removeEventListener('abort', abort))
      socket.once('connect', () => resolve(socket))
      // stays, so that an abort between two users of the socket is nobody's uncaught error
      socket.on('error', (error) => reject(connectionError(error, `${host}:${port}`)))
      if (signal.aborted) abort()
    })
  }

  private async resolved(name: string): Promise<readonly string[]> {
    let reason = ''
    try {
      const addresses = await this.resolve(name)
      if (addresses.length > 0) return addresses
    } catch (error) {
      reason = `: ${(error instanceof Error ? codeOf(error) : undefined) ?? errorText(error)}`
    }
    throw new NodeError('network_error', `no address for ${name}${reason}`)
  }

  private isAllowed(name: string, port: number): boolean {
    return this.options.allowHosts?.some((host) => [name, `${name}:${port}`].includes(host.toLowerCase())) === true
  }
}

/** Answers with addresses that were checked, so that a name can't point elsewhere in between. */
const lookupOf =
  (addresses: readonly string[]): LookupFunction =>
  (_host, { all }, callback) => {
    const entries = addresses.map((address) => ({ address, family: isIP(address) }))
    const [first = { address: '', family: 4 }] = entries
    if (all) callback(null, entries)
    else callback(null, first.address, first.family)
  }

const refused = (host: string): NodeError =>
  new NodeError('address_refused', `connections to ${host} are refused`, { host })

const TLS_CODES = /^(CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|ERR_TLS|ERR_SSL|EPROTO|HOSTNAME_MISMATCH|INVALID_CA)/

/** A failed connection as the node's error; only the host is told, not what it was asked. */
export function connectionError(error: unknown, host: string): NodeError {
  let reason = ''
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof NodeError) return cause
    const code = codeOf(cause)
    if (code !== undefined && TLS_CODES.test(code)) {
      return new NodeError('tls_failed', `no trusted connection to ${host}: ${code}`)
    }
    if (code !== undefined) return new NodeError('network_error', `no connection to ${host}: ${code}`)
    reason = cause.message
  }
  return new NodeError('network_error', `no connection to ${host}${reason && `: ${reason}`}`)
}

function codeOf(error: Error): string | undefined {
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
