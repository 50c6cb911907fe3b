import { expect, test } from 'vitest'
import { readForm } from '../../src/console/form.ts'
import { TOO_LARGE } from '../../src/http/listener.ts'

type Sent = Parameters<typeof readForm>[0]
const sent = (body: unknown, type: string): Sent => ({ body, headers: { 'content-type': type } }) as Sent
const URLENCODED = 'application/x-www-form-urlencoded'

test('one form, however it was encoded', async () => {
  const data = new FormData()
  data.append('name', ' Ä & B ')
  data.append('empty', '')
  data.append('file', new File(['x'], 'ö.txt'))
  data.append('none', new File([], ''))
  const request = new Response(data)
  const type = request.headers.get('content-type') ?? ''
  const multipart = await readForm(sent(Buffer.from(await request.arrayBuffer()), type))
  const urlencoded = await readForm(sent(Buffer.from('name=+%C3%84+%26+B+&empty='), URLENCODED))
  const json = await readForm(sent(Buffer.from('{"name": " Ä & B ", "empty": ""}'), 'application/json'))
  for (const form of [multipart, urlencoded, json]) {
    expect([form.raw('name'), form.text('name'), form.text('empty'), form.text('absent')]).toEqual([
      ' Ä & B ',
      'Ä & B',
      undefined,
      undefined,
    ])
  }
  expect(multipart.uploads('file')).toEqual([{ name: 'ö.txt', bytes: Buffer.from('x') }])
  expect(multipart.uploads('none')).toEqual([])
})

test('values of fields', async () => {
  const form = await readForm(
    sent(Buffer.from('text=a%0D%0Ab&n=3.5&bad=x&on=on&object=%7B%22a%22%3A1%7D&list=[1]'), URLENCODED),
  )
  expect([form.lines('text'), form.number('n'), form.flag('on'), form.flag('absent'), form.object('object')]).toEqual([
    'a\nb',
    3.5,
    true,
    false,
    { a: 1 },
  ])
  expect(() => form.number('bad')).toThrow('bad must be a number')
  expect(() => form.object('list')).toThrow('list must be a JSON object')
  expect(() => form.require('absent')).toThrow('absent is required')
  expect(() => form.lines('absent')).toThrow('absent is required')
})

test('what cannot be read is refused', async () => {
  await expect(readForm(sent(TOO_LARGE, URLENCODED))).rejects.toThrow('larger than 8 MiB')
  await expect(readForm(sent(Buffer.from('a=%00'), URLENCODED))).rejects.toThrow('U+0000')
  await expect(readForm(sent(Buffer.from('junk'), 'multipart/form-data; boundary=b'))).rejects.toThrow('multipart')
  await expect(readForm(sent(Buffer.from('[1]'), 'application/json'))).rejects.toThrow('JSON object')
})
