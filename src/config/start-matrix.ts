import { isLoopback } from '../base/network.ts'
import { parseAddress } from './address.ts'
import { ConfigError } from './errors.ts'
import type { Config } from './load.ts'
import { checkTls } from './tls.ts'

/** What is served of what the server's key guards. */
interface Served {
  memory: boolean
  kernel: boolean
}

/** Decides whether the listeners may start; gives the warnings to log. Contract: memory.md 10, kernel-2.md 16.
 *  @throws ConfigError when one has no key on an address that others reach, or TLS without a usable certificate. */
export function checkStart(config: Config, served: Served = { memory: true, kernel: true }): string[] {
  const keyed = keyedAddresses(config, served)
  const { tls, addr } = config.server
  return [...keyed.flatMap((each) => checkKey(config, each)), ...checkTls(tls, [addr, ...keyed].every(bindsLoopback))]
}

/** Memory's address, and that of a kernel without a token of its own. */
function keyedAddresses({ server, kernel }: Config, served: Served): string[] {
  const own = kernel.api.listenAddr === '' ? server.addr : kernel.api.listenAddr
  const addresses = [
    ...(served.memory ? [server.addr] : []),
    ...(served.kernel && kernel.token === undefined ? [own] : []),
  ]
  return [...new Set(addresses)]
}

export const bindsLoopback = (addr: string): boolean => isLoopback(parseAddress(addr)?.host ?? '')

function checkKey({ apiKey, server }: Config, addr: string): string[] {
  if (apiKey !== undefined) return []
  if (server.allow_no_auth)
    return [`no API key: everyone who reaches ${addr} may read and write (server.allow_no_auth)`]
  if (bindsLoopback(addr)) return [`no API key: every program on this machine may read and write (${addr})`]
  throw new ConfigError(
    'server.api_key',
    `server.api_key is required to listen on ${addr}, which other machines may reach. ` +
      'Set MEM_API_KEY or server.api_key_file, listen on 127.0.0.1, or pass --allow-no-auth',
  )
}
