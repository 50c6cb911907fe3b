import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net'
import { connect as connectTls, type SecureContext } from 'node:tls'
import { asError } from '../../base/errors.ts'

/** Where connections go. */
export interface Target {
  /** A name, or an address without brackets. */
  readonly host: string
  readonly port: number
  readonly secure: boolean
}

/** Who waits for a connection: it is told one of both, once, and unless it gives up, later than it asked. */
export interface Connecting {
  connected(socket: Socket): void
  /** @param error AddressRefusedError, one of the system, or what the connection was given up for */
  failed(error: Error): void
}

/** Connects. What it returns gives the connection up. */
export type Connect = (waiting: Connecting) => (reason: Error) => void

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
  /** Connections that open together ask once; an address in figures stays what it is. */
  let asked: Promise<readonly string[]> | undefined
  const forget = (): void => void (isIP(host) === 0 && (asked = undefined))
  const find = (): Promise<readonly string[]> => (asked ??= addresses().finally(forget))
  return (waiting) => {
    let socket: Socket | undefined
    let isOver = false
    const fail = (error: unknown): void => {
      if (isOver) return
      isOver = true
      socket?.destroy()
      waiting.failed(asError(error))
    }
    const begin = (found: readonly string[]): void => {
      if (isOver) return
      const opened = open(lookupIn(found)).setNoDelay(true).setKeepAlive(true, PROBE_MS)
      socket = opened.on('error', fail).once(secure ? 'secureConnect' : 'connect', () => {
        isOver = true
        waiting.connected(opened)
      })
    }
    find().then(begin).catch(fail)
    return fail
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
