import { expect, test } from 'vitest'
import { isLoopback } from '../../src/base/network.ts'

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
