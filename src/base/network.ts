import { BlockList, isIP, isIPv6 } from 'node:net'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/** Whether only this machine can reach it: `127.0.0.0/8`, `::1`, `localhost`. A host alone; IPv6 in brackets or not. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, '$1')
  const version = isIP(name)
  if (version === 6) return loopback.check(name, 'ipv6')
  return version === 4 ? name.startsWith('127.') : name === 'localhost'
}

/** The port that a URL means. */
export const portOf = ({ port = '', protocol }: { port?: string; protocol: string }): number =>
  port !== '' ? Number(port) : protocol === 'https:' ? 443 : 80

/** By which tries of one caller are counted: who has an IPv6 address usually has its whole /64. */
export function networkOf(address: string): string {
  const [, ipv4] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address) ?? []
  if (ipv4 !== undefined || !isIPv6(address)) return ipv4 ?? address
  const parts = address.replace(/%.*$/, '').split('::', 2)
  const [head = [], tail = []] = parts.map((part) => part.split(':').filter((group) => group !== ''))
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => '0')
  return [...head, ...zeros, ...tail]
    .slice(0, 4)
    .map((group) => parseInt(group, 16))
    .join(':')
}

/** Whether it is an address with the length of its network: `10.0.0.0/8`, `fd00::/8`. */
export function isRange(text: string): boolean {
  const [, address = '', bits = ''] = /^([^/]+)\/(\d{1,3})$/.exec(text) ?? []
  const version = isIP(address)
  return version !== 0 && Number(bits) <= (version === 4 ? 32 : 128)
}
