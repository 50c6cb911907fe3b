import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { allowedHosts, checkBaseUrl, isMetadata, isPublic } from '../../../src/gateway/kinds/addresses.ts'

const hex = (a: number, b: number): string => ((a << 8) | b).toString(16)

/** The forms in which an IPv4 address may come as IPv6. */
const forms = (address: string): string[] => {
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number)
  const tail = `${hex(a, b)}:${hex(c, d)}`
  return [
    `::ffff:${address}`,
    `::ffff:${tail}`,
    `64:ff9b::${address}`,
    `64:ff9b::${tail}`,
    `2002:${tail}::1`,
    `2002:${tail}:9::`,
  ]
}

const within = (base: readonly [number, number, number, number], prefix: number) =>
  fc.nat(2 ** (32 - prefix) - 1).map((offset) => {
    const start = base.reduce((sum, byte) => sum * 256 + byte, 0)
    const value = start + offset
    return [value / 2 ** 24, value / 2 ** 16, value / 2 ** 8, value].map((each) => Math.floor(each) % 256).join('.')
  })

const refused = fc.oneof(
  within([0, 0, 0, 0], 8),
  within([10, 0, 0, 0], 8),
  within([100, 64, 0, 0], 10),
  within([127, 0, 0, 0], 8),
  within([169, 254, 0, 0], 16),
  within([172, 16, 0, 0], 12),
  within([192, 168, 0, 0], 16),
  within([198, 18, 0, 0], 15),
  within([224, 0, 0, 0], 4),
  within([240, 0, 0, 0], 4),
)

const open = fc.oneof(
  within([1, 0, 0, 0], 8),
  within([8, 8, 0, 0], 16),
  within([52, 0, 0, 0], 8),
  within([104, 16, 0, 0], 12),
  within([172, 32, 0, 0], 12),
  within([100, 128, 0, 0], 10),
)

describe('addresses', () => {
  test('gateway#19 what is not public is not in any of its forms', () => {
    fc.assert(
      fc.property(refused, (address) => {
        for (const form of [
          address,
          ...forms(address),
          `::${address}`,
          `::ffff:0:${address}`,
          `64:ff9b:1::${address}`,
        ]) {
          expect([form, isPublic(form)]).toEqual([form, false])
        }
      }),
    )
  })

  test('gateway#19 what is public is so behind NAT64 too', () => {
    fc.assert(
      fc.property(open, (address) => {
        for (const form of [address, ...forms(address)]) expect([form, isPublic(form)]).toEqual([form, true])
        expect(isPublic(`::${address}`)).toBe(false)
      }),
    )
  })

  test('gateway#20 link-local and metadata addresses in any form', () => {
    fc.assert(
      fc.property(within([169, 254, 0, 0], 16), (address) => {
        for (const form of [address, ...forms(address)]) expect([form, isMetadata(form)]).toEqual([form, true])
      }),
    )
    for (const address of [
      'fe80::1',
      'fe80::1%eth0',
      'febf::1',
      'fd00:ec2::254',
      '100.100.100.200',
      '::ffff:6464:64c8',
    ]) {
      expect([address, isMetadata(address)]).toEqual([address, true])
    }
    for (const address of ['169.253.1.1', '100.100.100.201', 'fd00:ec2::253', '127.0.0.1', '8.8.8.8']) {
      expect([address, isMetadata(address)]).toEqual([address, false])
    }
  })

  test('gateway#19 of IPv6 only what is global and for no special purpose', () => {
    for (const address of ['2600:1f18::1', '2a00:1450:4001::200e', '2606:4700::6810:1'])
      expect([address, isPublic(address)]).toEqual([address, true])
    const others = [
      '::',
      '::1',
      'fc00::1',
      'fdff::1',
      'fe80::1',
      'fec0::1',
      'ff02::1',
      '2001:db8::1',
      '2001::1',
      '100::1',
    ]
    for (const address of [...others, '4000::1', '64:ff9b:1::8.8.8.8', 'no address', '']) {
      expect([address, isPublic(address)]).toEqual([address, false])
    }
  })

  test('hosts are allowed by name, by name and port, by address, by range', () => {
    const allowed = allowedHosts([
      'Localhost:11434',
      'models.internal',
      '10.1.0.0/16',
      '[fd12::1]:80',
      '192.168.7.7',
      'fd34::/64',
    ])
    expect(allowed.admits('localhost', 11434)).toBe(true)
    expect(allowed.admits('localhost', 80)).toBe(false)
    expect(allowed.admits('models.internal', 1)).toBe(true)
    expect(allowed.admits('x.models.internal', 1)).toBe(false)
    expect(allowed.admits('10.1.255.1', 9)).toBe(true)
    expect(allowed.admits('10.2.0.1', 9)).toBe(false)
    expect(allowed.admits('fd12::1', 80)).toBe(true)
    expect(allowed.admits('fd12::1', 81)).toBe(false)
    expect(allowed.admits('192.168.7.7', 5)).toBe(true)
    expect(allowed.admits('fd34::9', 5)).toBe(true)
  })

  test('gateway#19 the form of an address: https, no user, query, fragment', () => {
    const hosts = ['127.0.0.1:11434', 'models.internal', '10.0.0.0/8']
    const good = [
      'https://api.example.com/v1',
      'https://a.b/v1/',
      'http://127.0.0.1:11434/v1',
      'http://Models.Internal:9',
      'http://10.1.2.3',
    ]
    for (const url of good) expect([url, checkBaseUrl(url, hosts)]).toEqual([url, undefined])
    const bad = [
      '',
      'api.example.com',
      'ftp://a.b',
      'http://api.example.com',
      'http://127.0.0.1:80',
      'https://u@a.b',
      'https://u:p@a.b',
    ]
    for (const url of [...bad, 'https://a.b/?x=1', 'https://a.b/?', 'https://a.b/#', 'http://0x7f.1:80']) {
      expect([url, checkBaseUrl(url, hosts)]).toEqual([url, expect.any(String)])
    }
  })
})
