import { BlockList, isIP } from 'node:net'
import { portOf } from '../../base/network.ts'

/** Link-local, and where clouds keep their metadata. */
const METADATA = ['169.254.0.0/16', '100.100.100.200/32', 'fe80::/10', 'fd00:ec2::254/128']

/** IPv4 that is not on the public internet, by the IANA registry of special-purpose addresses. */
const SPECIAL_4 = `
  0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24
  192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4`
  .trim()
  .split(/\s+/)

/** Inside `2000::/3`, but for protocols and documents. */
const SPECIAL_6 = ['2001::/23', '2001:db8::/32', '3fff::/20']

/** Forms of IPv6 that carry an IPv4 address at their end: mapped, translated, NAT64 (also local), compatible. */
const CARRIERS = ['::ffff:', '::ffff:0:', '64:ff9b::', '64:ff9b:1::', '::']

/** Of a range such as `10.0.0.0/8`; an address alone is a range of one. */
function addRange(list: BlockList, range: string): void {
  const [address = '', prefix] = range.split('/')
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
  list.addSubnet(address, prefix === undefined ? (family === 'ipv6' ? 128 : 32) : Number(prefix), family)
}

/** Made when it is first asked, which not every start comes to. */
function listOf(ranges: () => readonly string[]): () => BlockList {
  let list: BlockList | undefined
  return () => {
    if (list) return list
    list = new BlockList()
    for (const range of ranges()) addRange(list, range)
    return list
  }
}

/** The range, and its IPv6 forms when it is one of IPv4: carried at the end, or behind `2002:` (6to4). */
function formsOf(range: string): string[] {
  const [address = '', prefix = '32'] = range.split('/')
  if (isIP(address) !== 4) return [range]
  const hex = Buffer.from(address.split('.').map(Number)).toString('hex')
  const sixToFour = `2002:${hex.slice(0, 4)}:${hex.slice(4)}::/${16 + Number(prefix)}`
  return [range, sixToFour, ...CARRIERS.map((carrier) => `${carrier}${address}/${96 + Number(prefix)}`)]
}

const metadata = listOf(() => METADATA.flatMap(formsOf))
const special = listOf(() => [...SPECIAL_4.flatMap(formsOf), ...SPECIAL_6])
const global6 = listOf(() => ['2000::/3', '64:ff9b::/96', '::ffff:0:0/96'])

function holds(list: BlockList, address: string): boolean {
  const [plain = ''] = address.split('%') // a zone tells only the way
  return list.check(plain, isIP(plain) === 6 ? 'ipv6' : 'ipv4')
}

/** Link-local or of a metadata service, in any form: no configuration allows it. Contract: gateway.md 10.2. */
export const isMetadata = (address: string): boolean => holds(metadata(), address)

/** On the public internet, whatever form it is written in. What is no address is not. */
export function isPublic(address: string): boolean {
  const [plain = ''] = address.split('%')
  const family = isIP(plain)
  return family !== 0 && !holds(special(), plain) && (family === 4 || holds(global6(), plain))
}

/** The hosts of `gateway.allowed_hosts`: `host`, `host:port`, CIDR. */
export interface AllowedHosts {
  /** The host of an address, as `URL` writes it without brackets: a name, or an address. */
  admits(host: string, port: number): boolean
}

/** Not a host with a port: for the pattern of IPv6, Node takes some milliseconds. */
const MAY_BE_ADDRESS = /^[\d.]+$|:.*:/

export function allowedHosts(entries: readonly string[]): AllowedHosts {
  const names = new Set<string>()
  const ranges = new BlockList()
  for (const entry of entries.map((each) => each.trim().toLowerCase())) {
    if (entry.includes('/') || (MAY_BE_ADDRESS.test(entry) && isIP(entry))) addRange(ranges, entry)
    else names.add(entry.replace(/^\[(.*)\]/, '$1'))
  }
  return {
    admits: (host, port) =>
      names.has(host) || names.has(`${host}:${port}`) || (isIP(host.split('%')[0] ?? '') !== 0 && holds(ranges, host)),
  }
}

/** A host as it is compared: lower case, no brackets, no dot at the end. */
export const plainHost = (host: string): string => host.toLowerCase().replace(/^\[|\]$|\.$/g, '')

/**
 * What is wrong with the form of a `base_url` or `endpoint`; undefined when nothing is. Whether its address may be
 * called shows at the connection. Contract: gateway.md 10.2.
 * @param entries `gateway.allowed_hosts`
 */
export function checkBaseUrl(text: string, entries: readonly string[]): string | undefined {
  if (!URL.canParse(text)) return 'is no URL'
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must be an https URL'
  if (url.username !== '' || url.password !== '') return 'must not hold a user or password'
  if (/[?#]/.test(text)) return 'must not hold a query or fragment'
  if (url.protocol === 'http:' && !allowedHosts(entries).admits(plainHost(url.hostname), portOf(url))) {
    return 'must be https: plain http is for hosts of gateway.allowed_hosts'
  }
  return undefined
}
