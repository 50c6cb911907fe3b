import { isLoopback, parseAddress } from './address.ts'
import { ConfigError } from './errors.ts'
import type { Config } from './load.ts'
import { checkTls } from './tls.ts'

/** Decides whether a listener may start; gives the warnings to log. `keyed` where it serves what the API key guards.
 *  Contract: memory.md 10.
 *  @throws ConfigError when it has no key on an address that others reach, or TLS without a usable certificate. */
export function checkStart(config: Config, keyed = true): string[] {
  return [...(keyed ? checkKey(config) : []), ...checkTls(config.server.tls, bindsLoopback(config))]
}

export const bindsLoopback = ({ server }: Config): boolean => isLoopback(parseAddress(server.addr)?.host ?? '')

function checkKey(config: Config): string[] {
  const { addr, allow_no_auth } = config.server
  if (config.apiKey !== undefined) return []
  if (allow_no_auth) return [`no API key: everyone who reaches ${addr} may read and write (server.allow_no_auth)`]
  if (bindsLoopback(config)) return [`no API key: every program on this machine may read and write (${addr})`]
  throw new ConfigError(
    'server.api_key',
    `server.api_key is required to listen on ${addr}, which other machines may reach. ` +
      'Set MEM_API_KEY or server.api_key_file, listen on 127.0.0.1, or pass --allow-no-auth',
  )
}
