import fc from 'fast-check'
import { expect, test } from 'vitest'
import { AnswerReader } from '../../../src/gateway/outbound/answer-reader.ts'

interface Answer {
  status: number
  fields: readonly string[]
  body: string
  keepsOpen: boolean
  /** Undefined until it ends. */
  isClean: boolean | undefined
}

const one = (fields: Partial<Answer>): Answer => ({
  status: 200,
  fields: [],
  body: '',
  keepsOpen: true,
  isClean: true,
  ...fields,
})
/** The answers in bytes that come in pieces, and whether their end ends one. */
function read(bytes: Buffer, cuts: readonly number[] = []): { answers: Answer[]; endsAnswer: boolean } {
  const answers: Answer[] = []
  let answer: Answer = one({})
  const reader = new AnswerReader({
    head: ({ status, fields, keepsOpen }) => {
      answer = { status, fields, keepsOpen, body: '', isClean: undefined }
      answers.push(answer)
    },
    body: (content) => void (answer.body += content.toString('latin1')),
    end: (isClean) => void (answer.isClean = isClean),
  })
  const ends = [...cuts.filter((cut) => cut > 0 && cut < bytes.length), bytes.length].sort((a, b) => a - b)
  for (const [i, end] of ends.entries()) {
    const piece = bytes.subarray(ends[i - 1] ?? 0, end)
    if (piece.length > 0) reader.read(piece)
  }
  return { answers, endsAnswer: reader.close() }
}

const raw = (...lines: string[]): Buffer => Buffer.from(lines.join('\r\n'), 'latin1')

const SIZED = raw('HTTP/1.1 200 OK', 'Content-Type:text/plain', 'X-Name:  \tGrüße \t', 'content-length: 5', '', 'hello')
const CHUNKED = raw(
  'HTTP/1.1 200',
  'Transfer-Encoding: Chunked',
  'Keep-Alive: timeout=5',
  '',
  '5;a="b;c"',
  'hello',
  '1 ',
  '\n',
  '00A',
  '0123456789',
  '0;last',
  'x-trailer: 1',
  'x-other: 2',
  '',
  '',
)
const EARLY = raw('HTTP/1.1 103 Early Hints', 'link: </a>', '', 'HTTP/1.1 100 Continue', '', '')

const CASES: [name: string, bytes: Buffer, answer: Answer, endsAnswer?: boolean][] = [
  [
    'a body of known length',
    SIZED,
    one({ fields: ['content-type', 'text/plain', 'x-name', 'Grüße', 'content-length', '5'], body: 'hello' }),
  ],
  [
    'chunks with extensions and trailers',
    CHUNKED,
    one({ fields: ['transfer-encoding', 'Chunked', 'keep-alive', 'timeout=5'], body: 'hello\n0123456789' }),
  ],
  [
    'a body up to the end of the connection',
    raw('HTTP/1.1 200 OK', '', 'all that comes'),
    one({ body: 'all that comes', keepsOpen: false }),
    true,
  ],
  ['no body', raw('HTTP/1.1 204 No Content', '', ''), one({ status: 204 })],
  [
    'an empty body',
    raw('HTTP/1.1 500 ', 'content-length: 0', '', ''),
    one({ status: 500, fields: ['content-length', '0'] }),
  ],
  [
    'an answer behind those that are on the way to it',
    Buffer.concat([EARLY, SIZED]),
    one({ fields: ['content-type', 'text/plain', 'x-name', 'Grüße', 'content-length', '5'], body: 'hello' }),
  ],
  [
    'a connection that closes',
    raw('HTTP/1.1 200 OK', 'Connection: x, Close', 'content-length: 1', '', 'a'),
    one({ fields: ['connection', 'x, Close', 'content-length', '1'], body: 'a', keepsOpen: false }),
  ],
  [
    'HTTP/1.0',
    raw('HTTP/1.0 200 OK', 'content-length: 1', '', 'a'),
    one({ fields: ['content-length', '1'], body: 'a', keepsOpen: false }),
  ],
]

test.each(CASES)('%s, wherever the bytes are cut', (_name, bytes, answer, endsAnswer = false) => {
  for (let cut = 0; cut < bytes.length; cut++) expect(read(bytes, [cut])).toEqual({ answers: [answer], endsAnswer })
  const everywhere = Array.from({ length: bytes.length }, (_, i) => i)
  expect(read(bytes, everywhere)).toEqual({ answers: [answer], endsAnswer })
})

test('what was written as an answer is read, in any chunks and pieces', () => {
  const content = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes))
  fc.assert(
    fc.property(fc.array(content), fc.boolean(), fc.array(fc.nat(2000)), (contents, isChunked, cuts) => {
      const body = Buffer.concat(contents)
      const chunks = contents.flatMap((each) =>
        each.length > 0 ? [Buffer.from(`${each.length.toString(16)}\r\n`), each, Buffer.from('\r\n')] : [],
      )
      const bytes = isChunked
        ? Buffer.concat([raw('HTTP/1.1 200 OK', 'transfer-encoding: chunked', '', ''), ...chunks, raw('0', '', '')])
        : Buffer.concat([raw('HTTP/1.1 200 OK', `content-length: ${body.length}`, '', ''), body])
      const { answers } = read(bytes, cuts)
      expect(answers).toMatchObject([{ body: body.toString('latin1'), isClean: true }])
    }),
  )
})

test('one answer after the other; bytes behind an end are told', () => {
  const answers: string[] = []
  const reader = new AnswerReader({
    head: () => undefined,
    body: (content) => void answers.push(content.toString()),
    end: (isClean) => void answers.push(isClean ? 'clean' : 'more'),
  })
  reader.read(SIZED)
  reader.read(CHUNKED.subarray(0, 70))
  reader.read(CHUNKED.subarray(70))
  reader.read(Buffer.concat([SIZED, Buffer.from('\r\n')]))
  expect(answers.filter((each) => each === 'clean' || each === 'more')).toEqual(['clean', 'clean', 'more'])
  expect(answers.at(-2)).toBe('hello')
})

const headed = (...fields: string[]): Buffer => raw('HTTP/1.1 200 OK', ...fields, '', 'body')
const chunked = (...lines: string[]): Buffer => raw('HTTP/1.1 200 OK', 'transfer-encoding: chunked', '', ...lines)
const LONG = 'x'.repeat(17 * 1024)
test.each([
  ['another protocol', raw('SSH-2.0-x', '', '')],
  ['HTTP/2', raw('HTTP/2.0 200 OK', '', '')],
  ['a status of two digits', raw('HTTP/1.1 20 OK', '', '')],
  ['a change of the protocol', raw('HTTP/1.1 101 Switching Protocols', 'upgrade: x', '', '')],
  ['two lengths', headed('content-length: 4', 'content-length: 4')],
  ['a list of lengths', headed('content-length: 4, 4')],
  ['a length with a sign', headed('content-length: +4')],
  ['a length beyond all numbers', headed(`content-length: ${'9'.repeat(16)}`)],
  ['a length beside chunks', headed('content-length: 4', 'transfer-encoding: chunked')],
  ['chunks twice', headed('transfer-encoding: chunked', 'transfer-encoding: chunked')],
  ['another coding', headed('transfer-encoding: gzip, chunked')],
  ['a space before the colon', headed('content-length : 4')],
  ['a folded line', headed('x-name: a', ' b')],
  ['a line without a colon', headed('x-name')],
  ['a bare line feed', headed('x-name: a\ncontent-length: 4')],
  ['a bare carriage return', headed('x-name: a\rb')],
  ['a NUL', headed('x-name: a\0b')],
  ['a long head', headed(`x-name: ${LONG}`)],
  ['a long head that does not end', raw('HTTP/1.1 200 OK', `x-name: ${LONG}`)],
  ['heads without end', Buffer.concat(Array.from({ length: 500 }, () => EARLY))],
  ['a chunk without a size', chunked('', 'a')],
  ['a size that is none', chunked('0x5', 'hello')],
  ['a size beyond all bounds', chunked('123456789', 'a')],
  ['a chunk that is longer than its size', chunked('4', 'hello', '0', '', '')],
  ['a size that a bare line feed ends', chunked('5\nhello', '0', '', '')],
  ['a long extension', chunked(`5;${LONG}`, 'hello')],
  ['long trailers', chunked('0', `a: ${LONG.slice(0, 9000)}`, `b: ${LONG.slice(0, 9000)}`, '', '')],
])('%s is no answer, wherever the bytes are cut', (_name, bytes) => {
  expect(() => read(bytes)).toThrow(expect.objectContaining({ code: 'EPROTO' }))
  const step = Math.ceil(bytes.length / 100)
  for (let cut = 1; cut < bytes.length; cut += step) {
    expect(() => read(bytes, [cut])).toThrow(/^the answer is not HTTP\/1\.1: /)
  }
})
