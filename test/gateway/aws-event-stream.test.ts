import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { EventStreamError, EventStreamReader, type EventMessage } from '../../src/gateway/relay/aws-event-stream.ts'

function header(name: string, value: string): Buffer {
  const [key, text] = [Buffer.from(name), Buffer.from(value)]
  const length = Buffer.alloc(3, 7)
  length.writeUInt16BE(text.length, 1)
  return Buffer.concat([Buffer.from([key.length]), key, length, text])
}

function message(headers: Readonly<Record<string, string>>, payload: string): Buffer {
  const head = Buffer.concat(Object.entries(headers).map(([name, value]) => header(name, value)))
  const body = Buffer.from(payload)
  const bytes = Buffer.alloc(12 + head.length + body.length + 4)
  bytes.writeUInt32BE(bytes.length, 0)
  bytes.writeUInt32BE(head.length, 4)
  bytes.writeUInt32BE(crc32(bytes.subarray(0, 8)), 8)
  head.copy(bytes, 12)
  body.copy(bytes, 12 + head.length)
  bytes.writeUInt32BE(crc32(bytes.subarray(0, bytes.length - 4)), bytes.length - 4)
  return bytes
}

const STREAM = Buffer.concat([
  message({ ':event-type': 'messageStart', ':content-type': 'application/json' }, '{"role":"assistant"}'),
  message({ ':event-type': 'contentBlockDelta' }, '{"delta":{"text":"é"}}'),
  message({ ':exception-type': 'throttlingException' }, '{}'),
])

function read(bytes: Buffer, cut: number): EventMessage[] {
  const reader = new EventStreamReader()
  return [...reader.read(bytes.subarray(0, cut)), ...reader.read(bytes.subarray(cut))]
}

test('gateway#71 the same messages wherever the bytes are cut', () => {
  const whole = read(STREAM, 0)
  expect(whole.map(({ headers, payload }) => [[...headers.values()][0], payload])).toEqual([
    ['messageStart', '{"role":"assistant"}'],
    ['contentBlockDelta', '{"delta":{"text":"é"}}'],
    ['throttlingException', '{}'],
  ])
  for (let cut = 0; cut <= STREAM.length; cut++) expect(read(STREAM, cut)).toEqual(whole)
})

test('gateway#71 a large message that comes in many pieces', () => {
  const bytes = Buffer.concat([message({ ':event-type': 'a' }, 'x'.repeat(1_000_000)), STREAM])
  const reader = new EventStreamReader()
  const found = Array.from({ length: Math.ceil(bytes.length / 100) }, (_, i) =>
    reader.read(bytes.subarray(i * 100, (i + 1) * 100)),
  ).flat()
  expect(found.map(({ payload }) => payload.length)).toEqual([1_000_000, 20, 22, 2])
})

test('gateway#71 a changed bit is found, wherever it is', () => {
  fc.assert(
    fc.property(fc.nat(STREAM.length - 1), fc.integer({ min: 0, max: 7 }), (at, bit) => {
      const changed = Buffer.from(STREAM)
      changed[at] = (changed[at] ?? 0) ^ (1 << bit)
      expect(() => read(changed, 0)).toThrow(EventStreamError)
    }),
  )
})
