import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { LineBuffer } from '../../src/base/line-buffer.ts'
import { createLogger, requestLog } from '../../src/base/log.ts'

const LINE = { method: 'POST', path: '/v1/chat', status: 200, duration_ms: 1.25, request_id: 'req_1' }
const TOKEN = `mvk_${'a'.repeat(43)}`

function collected(level: string, format: 'json' | 'text') {
  const lines: string[] = []
  let flushed = 0
  const out = { write: (line: string) => void lines.push(line), flush: () => void flushed++ }
  return { log: createLogger(level, format, out), lines, flushes: () => flushed }
}

test('a plain line of a request is the line that the logger would write', () => {
  const { log, lines } = collected('info', 'json')
  const write = requestLog(log)
  log.info(LINE, 'request')
  write(LINE, true)
  const [usual, plain] = lines.map((line) => line.replace(/"time":"[^"]+"/, '"time":"now"'))
  expect(plain).toBe(usual)
  expect(Date.parse(JSON.parse(lines[1] ?? '').time)).toBeGreaterThan(0)
})

test('what came from a client is escaped, and what is secret in it hidden', () => {
  const { log, lines } = collected('info', 'json')
  requestLog(log)({ ...LINE, path: `/"${TOKEN}` }, false)
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ path: '/"mvk_[REDACTED]', msg: 'request' })
})

test('lines of requests follow level and format', () => {
  const quiet = collected('warn', 'json')
  requestLog(quiet.log)(LINE, true)
  requestLog(quiet.log)(LINE, false)
  expect(quiet.lines).toEqual([])
  const text = collected('info', 'text')
  requestLog(text.log)(LINE, true)
  expect(text.lines[0]).toMatch(/^[\d:.]{12} INFO {2}request method=POST path=\/v1\/chat status=200 /)
  expect(text.flushes()).toBe(0)
  text.log.warn({}, 'look')
  expect(text.flushes()).toBe(1)
})

test('lines reach their file in order, whether they fill the buffer or wait', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'mem-test-lines-'))
  const path = join(directory, 'lines')
  const buffer = new LineBuffer(openSync(path, 'w'))
  const lines = Array.from({ length: 5000 }, (_, i) => `${i} ${'x€'.repeat(20)}\n`)
  lines.splice(2500, 0, `${'long '.repeat(20_000)}\n`)
  for (const line of lines) buffer.write(line)
  await expect.poll(() => readFileSync(path, 'utf8')).toBe(lines.join(''))
  rmSync(directory, { recursive: true })
})
