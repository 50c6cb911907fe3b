import { once } from 'node:events'
import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net'
import { connect as connectTls, type SecureContext } from 'node:tls'
import { asError } from '../../base/errors.ts'
import { endBefore } from '../../http/deadline.ts'

/** Where connections go. */
export interface Target {
  /** A name, or an address without brackets. */
  readonly host: string
  readonly port: number
  readonly secure: boolean
}

/** Connects. @throws what the signal was aborted for, AddressRefusedError, or an error of the system */
export type Connect = (signal: AbortSignal) => Promise<Socket>

export interface ConnectParts {
  readonly target: Target
  /** Those that its host means now; nothing else is connected to. @throws AddressRefusedError */
  readonly addresses: () => Promise<readonly string[]>
  /** Whom to trust. */
  readonly secureContext: () => SecureContext
}

/** A peer that is gone without a word shows after so long, and some more tries. */
const PROBE_MS = 60_000

/** TCP, and TLS where the target is secure: the certificate is verified whatever the environment says. */
export function connector({ target, addresses, secureContext }: ConnectParts): Connect {
  const { host, port, secure } = target
  /** Of a connection before: with it the next one needs no certificate. */
  let session: Buffer | undefined
  const open = (lookup: LookupFunction): Socket => {
    const to = { host, port, lookup, autoSelectFamily: true }
    if (!secure) return connectTcp(to)
    const socket = connectTls({
      ...to,
      ...(isIP(host) === 0 && { servername: host }),
      ...(session && { session }),
      secureContext: secureContext(),
      rejectUnauthorized: true,
      ALPNProtocols: ['http/1.1'],
    })
    return socket.on('session', (given: Buffer) => (session = given))
  }
  return async (signal) => {
    const found = await endBefore(signal, addresses(), () => asError(signal.reason))
    const socket = open(lookupIn(found)).setNoDelay(true).setKeepAlive(true, PROBE_MS)
    // Whoever waits for the connection is told; later ones listen for themselves.
    socket.on('error', () => undefined)
    try {
      await once(socket, secure ? 'secureConnect' : 'connect', { signal })
      return socket
    } catch (error) {
      socket.destroy()
      throw signal.aborted ? asError(signal.reason) : error
    }
  }
}

/** An address in figures is never looked up. */
function lookupIn(addresses: readonly string[]): LookupFunction {
  const entries = addresses.map((address) => ({ address, family: isIP(address) }))
  return (_host, { all }, callback) => {
    const [one] = entries
    if (one === undefined) callback(new Error('the name has no address'), '')
    else if (all) callback(null, entries)
    else callback(null, one.address, one.family)
  }
}
