import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createIdSource, timeOfUuid, uuidAt } from '../../src/base/ids.ts'

const AT = Date.UTC(2026, 10, 22, 11, 4, 57, 123)

/** Digits of Crockford's base 32 as a number. */
const timeIn = (id: string): number =>
  Array.from(id.slice(0, 10)).reduce((sum, digit) => sum * 32 + '0123456789ABCDEFGHJKMNPQRSTVWXYZ'.indexOf(digit), 0)

describe('ids', () => {
  it('tell their time, and each is greater than the one before, whatever the clock does', () => {
    let now = AT
    const ids = createIdSource({ now: () => now })
    const made = Array.from({ length: 3000 }, (_, i) => {
      now = AT + (i < 1000 ? 0 : i < 2000 ? i : -i)
      return ids('req_')
    })
    expect(made.every((id) => /^req_[0-9A-HJKMNP-TV-Z]{26}$/.test(id))).toBe(true)
    expect(made).toEqual(made.toSorted())
    expect(new Set(made).size).toBe(3000)
    expect(timeIn(String(made[0]).slice(4))).toBe(AT)
    expect(timeIn(String(made[1500]).slice(4))).toBe(AT + 1500)
  })

  it('of two processes differ within a millisecond', () => {
    const [one, other] = [createIdSource({ now: () => AT })(''), createIdSource({ now: () => AT })('')]
    expect(one.slice(0, 10)).toBe(other.slice(0, 10))
    expect(one.slice(10)).not.toBe(other.slice(10))
  })

  it('as UUIDs are of version 7, and tell their time', () => {
    const made = Array.from({ length: 5000 }, (_, i) => uuidAt(AT + i))
    expect(made.every((id) => /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/.test(id))).toBe(true)
    expect(made.map(timeOfUuid)).toEqual(made.map((_, i) => AT + i))
    expect([timeOfUuid(randomUUID()), timeOfUuid('7')]).toEqual([undefined, undefined])
    expect(new Set(made.map((id) => id.slice(15))).size).toBe(5000)
  })
})
