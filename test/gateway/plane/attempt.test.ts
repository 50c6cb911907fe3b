import { expect, test } from 'vitest'
import { Attempt, type AttemptEnd } from '../../../src/gateway/plane/attempt.ts'
import { AddressRefusedError } from '../../../src/gateway/kinds/upstream.ts'
import { NetworkError } from '../../../src/gateway/outbound/dispatcher.ts'
import { Turn } from '../../../src/gateway/plane/turn.ts'
import { Watch } from '../../../src/gateway/plane/watch.ts'
import { candidateOf, chat } from '../exchange/support.ts'

const LIMITS = {
  connectMs: 1000,
  firstByteMs: 1000,
  idleMs: 1000,
  totalMs: 1000,
  commitAfterMs: 1000,
  maxBytes: 1000,
}
const SINK = {
  head: () => undefined,
  write: () => true,
  drained: async () => undefined,
  end: () => undefined,
  isGone: false,
  onGone: () => undefined,
}

/** How an attempt ends whose request cannot be made, and what the log was told. */
async function unsent(error: Error): Promise<{ end: AttemptEnd; told: string[] }> {
  const { upstream, ...candidate } = candidateOf('openai')
  const request = async (): Promise<never> => {
    throw error
  }
  const told: string[] = []
  const log = { error: (_fields: object, message: string) => void told.push(message) }
  const end = await new Promise<AttemptEnd>((resolve) => {
    new Attempt({
      candidate: { ...candidate, upstream: { ...upstream, request } },
      exchange: chat({ ...candidate, upstream }),
      surface: 'chat',
      stream: false,
      forwarded: {},
      limits: LIMITS,
      sink: SINK,
      keepsContent: false,
      owner: { commit: () => undefined, ended: (_attempt, how) => resolve(how) },
      watch: new Watch(() => 0),
      turn: new Turn(log, () => false),
      monotonic: () => 0,
      log,
    }).run()
  })
  return { end, told }
}

test('gateway#31 whoever gives the token of a call cannot be reached: as if the provider could not', async () => {
  const lost = Object.assign(new Error('getaddrinfo ENOTFOUND sts.internal'), {
    syscall: 'getaddrinfo',
    code: 'ENOTFOUND',
  })
  const { end, told } = await unsent(lost)
  expect(end.fault).toMatchObject({
    class: 'connect',
    error: { code: 'upstream_error', message: 'the provider cannot be reached (ENOTFOUND)' },
  })
  expect(told).toEqual([])
  const late = new NetworkError('ETIMEDOUT', 'slow')
  expect((await unsent(late)).end.fault).toMatchObject({ class: 'connect', error: { code: 'upstream_timeout' } })
})

test('an address that may not be called is told without it', async () => {
  const { end, told } = await unsent(new AddressRefusedError('10.0.0.1'))
  expect(end.fault).toMatchObject({
    class: 'connect',
    error: {
      code: 'upstream_error',
      message: 'the provider cannot be reached (its address is one that the configuration does not allow)',
    },
  })
  expect(told).toEqual([])
})

test('a fault of ours on the way to a call is logged whole, and its text goes nowhere', async () => {
  const { end, told } = await unsent(new TypeError('x is not a function'))
  expect(end.fault).toMatchObject({ class: 'connect', error: { code: 'upstream_error' } })
  expect(end.fault?.error.message).not.toContain('function')
  expect(told).toEqual(['a call could not be made'])
})
