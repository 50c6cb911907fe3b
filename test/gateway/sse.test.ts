import fc from 'fast-check'
import { expect, test } from 'vitest'
import { EventReader, EventTooLargeError, type StreamEvent } from '../../src/gateway/relay/sse.ts'

function read(text: string | Buffer, cuts: readonly number[] = []): StreamEvent[] {
  const bytes = Buffer.from(text)
  const reader = new EventReader()
  const ends = [...cuts.filter((cut) => cut < bytes.length), bytes.length].sort((a, b) => a - b)
  return ends.flatMap((end, i) => [...reader.read(bytes.subarray(ends[i - 1] ?? 0, end))])
}

const STREAM =
  '\uFEFF: hello\r\ndata: {"a":1}\r\n\r\nevent: ping\rdata: one\rdata:two\r\rid: 3\ndata: ü😀\ndata\n\ndata: cut off'
const EVENTS = [
  { event: 'message', data: '{"a":1}' },
  { event: 'ping', data: 'one\ntwo' },
  { event: 'message', data: 'ü😀\n' },
]

test('gateway#75 the same events wherever the bytes are cut', () => {
  expect(read(STREAM)).toEqual(EVENTS)
  for (let cut = 0; cut <= Buffer.byteLength(STREAM); cut++) expect(read(STREAM, [cut])).toEqual(EVENTS)
})

test('events written with any ends of line are read back, in any pieces', () => {
  const line = fc.string({ unit: 'grapheme' }).map((text) => text.replace(/[\r\n]/g, ''))
  const written = fc.record({ event: fc.constantFrom('message', 'delta'), data: fc.array(line, { minLength: 1 }) })
  fc.assert(
    fc.property(fc.array(written), fc.constantFrom('\n', '\r\n', '\r'), fc.array(fc.nat(400)), (events, end, cuts) => {
      const text = events
        .map(({ event, data }) => `event: ${event}${end}${data.map((each) => `data: ${each}${end}`).join('')}${end}`)
        .join('')
      expect(read(text, cuts)).toEqual(events.map(({ event, data }) => ({ event, data: data.join('\n') })))
    }),
  )
})

test('gateway#75 an event of 10 MiB is read, one above 16 MiB is refused', () => {
  expect(read(`data: ${'x'.repeat(10 * 1024 * 1024)}\n\n`)[0]?.data).toHaveLength(10 * 1024 * 1024)
  expect(() => read(`data: ${'x'.repeat(16 * 1024 * 1024)}`)).toThrow(EventTooLargeError)
  expect(() => read(`data: ${'x'.repeat(1024)}\n`.repeat(17 * 1024))).toThrow(EventTooLargeError)
})
