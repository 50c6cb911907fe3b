import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'
import { withDeadline } from '../../src/base/deadline.ts'

const aborted = (signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason)
    signal.addEventListener('abort', () => resolve(signal.reason))
  })

describe('withDeadline', () => {
  test('gives what the work gives, and leaves nothing on the outer signal', async () => {
    const outer = new AbortController()
    const signals: AbortSignal[] = []
    const answer = await withDeadline(60_000, outer.signal, async (signal) => {
      signals.push(signal)
      return 7
    })
    outer.abort()
    expect(answer).toBe(7)
    expect(signals.map((signal) => signal.aborted)).toEqual([false])
    expect(getEventListeners(outer.signal, 'abort')).toEqual([])
  })

  test('aborts the work with a TimeoutError when time is up', async () => {
    const reason = await withDeadline(1, new AbortController().signal, aborted)
    expect(reason).toMatchObject({ name: 'TimeoutError' })
  })

  test('aborts the work with the reason of the outer signal, at once when that has ended before', async () => {
    const outer = new AbortController()
    const running = withDeadline(60_000, outer.signal, aborted)
    outer.abort('enough')
    expect(await running).toBe('enough')
    expect(await withDeadline(60_000, outer.signal, aborted)).toBe('enough')
  })

  test('throws what the work throws', async () => {
    const failing = withDeadline(60_000, new AbortController().signal, () => Promise.reject(new Error('no')))
    await expect(failing).rejects.toThrow('no')
  })
})
