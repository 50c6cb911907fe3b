import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { KEPT_BYTES, keptContent } from '../../../src/gateway/plane/kept-content.ts'

const BYTES = Buffer.from('not really an image')
const BASE64 = BYTES.toString('base64')
const told = (type: string): string =>
  `${type}, ${BYTES.length} bytes, sha256 ${createHash('sha256').update(BYTES).digest('hex')}`

const kept = (body: unknown): unknown => JSON.parse(keptContent(Buffer.from(JSON.stringify(body))).toString())

test('of images, documents and sound type, size and hash are kept, wherever they stand', () => {
  const source = { type: 'base64', media_type: 'image/png', data: BASE64 }
  const result = { type: 'tool_result', content: [{ type: 'image', source }] }
  expect(kept({ content: [{ type: 'image', source }, result] })).toEqual({
    content: [
      { type: 'image', source: { ...source, data: told('image/png') } },
      { type: 'tool_result', content: [{ type: 'image', source: { ...source, data: told('image/png') } }] },
    ],
  })
  const url = `data:image/jpeg;charset=x;base64,${BASE64}`
  const sound = { type: 'input_audio', input_audio: { data: BASE64, format: 'wav' } }
  expect(kept({ content: [{ image_url: url }, { file: { file_data: url } }, sound] })).toEqual({
    content: [
      { image_url: told('image/jpeg') },
      { file: { file_data: told('image/jpeg') } },
      { type: 'input_audio', input_audio: { data: told('wav'), format: 'wav' } },
    ],
  })
})

test('what only looks like it stays as it is', () => {
  const body = {
    text: 'base64 is data:image/png;base64,AAAA written out',
    source: { type: 'text', media_type: 'text/plain', data: 'plain' },
    input: { data: 'words', format: 'csv' },
    link: 'https://example.org/a.png',
  }
  expect(kept(body)).toEqual(body)
})

test('text is cut where it is too long, and what is no JSON holds no image either', () => {
  expect(keptContent(Buffer.alloc(KEPT_BYTES + 1, 'a'))).toHaveLength(KEPT_BYTES)
  expect(keptContent(Buffer.from(`{"url":"data:image/png;base64,${BASE64}`)).toString()).toMatch(/^no JSON, \d+ bytes/)
})
