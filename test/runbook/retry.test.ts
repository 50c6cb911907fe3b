import { expect, test } from 'vitest'
import { backoff, type RetryPolicy } from '../../src/runbook/run/retry.ts'

const policy: RetryPolicy = { attempts: 5, backoffMs: 1000, maxBackoffMs: 5000, jitter: false, on: [] }

test('runbook#74 backoff doubles up to its bound, Retry-After wins below it, jitter is repeatable', () => {
  expect([1, 2, 3, 4].map((attempt) => backoff(policy, attempt, undefined, 'r/n'))).toEqual([1000, 2000, 4000, 5000])
  expect(backoff(policy, 1, 3000, 'r/n')).toBe(3000)
  expect(backoff(policy, 1, 60_000, 'r/n')).toBe(5000)
  expect(backoff(policy, 3, 100, 'r/n')).toBe(4000)
  const jittered = [1, 2, 3].map((attempt) => backoff({ ...policy, jitter: true }, attempt, undefined, 'r/n'))
  expect([1, 2, 3].map((attempt) => backoff({ ...policy, jitter: true }, attempt, undefined, 'r/n'))).toEqual(jittered)
  for (const [i, delay] of jittered.entries()) {
    expect(delay).toBeGreaterThanOrEqual(500 * 2 ** i)
    expect(delay).toBeLessThanOrEqual(1000 * 2 ** i)
  }
  expect(backoff({ ...policy, jitter: true }, 1, undefined, 'other')).not.toBe(jittered[0])
})
