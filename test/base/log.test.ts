import { execFileSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, rmSync } from 'node:fs'
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

test('lines that nobody takes are lost and stop nothing; when somebody is there again, it is told', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'mem-test-lines-'))
  const path = join(directory, 'pipe')
  execFileSync('/bin/sh', ['-c', 'mkfifo "$0"', path])
  const openReader = (): number => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const first = openReader()
  const buffer = new LineBuffer(openSync(path, 'w'))
  const log = createLogger('info', 'json', buffer)
  closeSync(first)
  log.warn({}, 'nobody hears this')
  log.warn({}, 'nor this')
  await expect.poll(() => buffer.lost).toBeGreaterThan(120)

  const second = openReader()
  const heard: string[] = []
  const read = (): string[] => {
    const chunk = Buffer.alloc(64 * 1024)
    try {
      heard.push(...chunk.toString('utf8', 0, readSync(second, chunk)).trim().split('\n'))
    } catch (error) {
      if (!String(error).includes('EAGAIN')) throw error // nothing yet
    }
    return heard.filter((line) => line !== '').map((line): string => JSON.parse(line).msg)
  }
  log.warn({}, 'somebody hears this')
  await expect.poll(read).toHaveLength(2)
  expect(read()).toEqual(['somebody hears this', expect.stringContaining('could not be written')])
  expect(JSON.parse(heard.at(-1) ?? '').lost_bytes).toBeGreaterThan(100)
  closeSync(second)
  rmSync(directory, { recursive: true })
})
