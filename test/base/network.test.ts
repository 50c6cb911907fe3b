import { expect, test } from 'vitest'
import { isLoopback, networkOf } from '../../src/base/network.ts'

test('isLoopback knows the names that reach only this machine', () => {
  const names = [
    'localhost',
    'LocalHost',
    '127.0.0.1',
    '127.8.9.10',
    '::1',
    '[::1]',
    '0:0:0:0:0:0:0:1',
    '::ffff:127.0.0.1',
  ]
  expect(names.filter((name) => !isLoopback(name))).toEqual([])
  const others = [
    '',
    '0.0.0.0',
    '::',
    '10.0.0.1',
    '::ffff:10.0.0.1',
    '127.evil.example',
    '127.0.0.999',
    'localhost.example',
  ]
  expect(others.filter(isLoopback)).toEqual([])
})

test.each([
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::9'],
  ['2001:db8::3:4:5:6:7', '2001:db8:0:3:ffff::'],
  ['2001:DB8::1', '2001:db8:0:0:7::'],
  ['fe80::1%eth0', 'fe80::2'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
])('%s and %s are of one network', (one, other) => expect(networkOf(one)).toBe(networkOf(other)))

test.each([
  ['2001:db8::3:4:5:6:7', '2001:db8::4:4:5:6:7'],
  ['2001:db8::1', '2001:db8:1::1'],
  ['192.0.2.1', '192.0.2.2'],
])('%s and %s are not', (one, other) => expect(networkOf(one)).not.toBe(networkOf(other)))
