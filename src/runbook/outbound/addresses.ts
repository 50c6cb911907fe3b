import { BlockList, isIP } from 'node:net'

const METADATA_AND_LINK_LOCAL = ['169.254.0.0/16', 'fe80::/10', 'fd00:ec2::254/128', '100.100.100.200/32']

/** Loopback, private, shared, unique-local, unspecified, multicast and reserved. */
const NOT_PUBLIC = `
  0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.168.0.0/16
  198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
  ::/128 ::1/128 fc00::/7 ff00::/8 100::/64 2001:db8::/32`
  .trim()
  .split(/\s+/)

/** IPv6 forms that carry an IPv4 address in their last 32 bits: NAT64 and compatible; `BlockList` knows mapped ones. */
const CARRIERS = ['64:ff9b::', '::']

function blockList(ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', prefix] = range.split('/')
    if (isIP(address) === 6) list.addSubnet(address, Number(prefix), 'ipv6')
    else {
      list.addSubnet(address, Number(prefix), 'ipv4')
      for (const carrier of CARRIERS) list.addSubnet(`${carrier}${address}`, 96 + Number(prefix), 'ipv6')
    }
  }
  return list
}

const lists = new Map<readonly string[], BlockList>()

/** Lists are made when first needed: that takes 4 ms, a fifth of a small run. */
function matches(ranges: readonly string[], address: string): boolean {
  const list = lists.get(ranges) ?? blockList(ranges)
  lists.set(ranges, list)
  const [plain = ''] = address.split('%')
  return list.check(plain, isIP(plain) === 6 ? 'ipv6' : 'ipv4')
}

/** Link-local, or of a metadata service: never connected to. Contract: runbook.md 5.1. */
export const isAlwaysRefused = (address: string): boolean => matches(METADATA_AND_LINK_LOCAL, address)

/** Not on the public internet. */
export const isPrivate = (address: string): boolean => matches(NOT_PUBLIC, address)
