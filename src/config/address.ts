import { isIP } from 'node:net'

/** Where a listener binds; an empty host is every interface. */
export interface Address {
  host: string
  port: number
}

/** Reads `host:port`, `[ipv6]:port` and `:port`; undefined when it is none of them. */
export function parseAddress(text: string): Address | undefined {
  const [, ipv6, name = '', digits] = /^(?:\[([^\]]*)\]|([^:[\]\s/]*)):(\d{1,5})$/.exec(text) ?? []
  const port = Number(digits)
  if (digits === undefined || port > 65_535 || (ipv6 !== undefined && isIP(ipv6) !== 6)) return undefined
  return { host: ipv6 ?? name, port }
}
