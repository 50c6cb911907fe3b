import { expect, test } from 'vitest'
import { reportError } from '../../src/cli/error-report.ts'

/** What a person reads, and the exit code, for an error of the system or of a database. */
function report(code: string): { exitCode: number; told: string } {
  let told = ''
  const sink = { write: (text: string) => void (told += text) }
  const io = { stdin: (async function* () {})(), stdout: sink, stderr: sink, env: {} }
  return { exitCode: reportError(Object.assign(new Error('it failed'), { code }), { io, words: ['export'] }), told }
}

test.each([
  ['SQLITE_FULL', 'error: the disk is full\n  Make room and run it again.\n'],
  ['ENOSPC', 'error: the disk is full\n  Make room and run it again.\n'],
  ['53100', 'error: the disk is full\n  Make room and run it again.\n'],
  ['SQLITE_READONLY', 'error: it failed\n  Does this user have the right to read and write there?\n'],
  ['SQLITE_CANTOPEN', 'error: it failed\n  Does this user have the right to read and write there?\n'],
  ['EACCES', 'error: it failed\n  Does this user have the right to read and write there?\n'],
  ['SQLITE_BUSY', 'error: it failed\n  Another program holds the database: wait for its end and run it again.\n'],
])('memory#139 %s is a local failure that one can put right: 4', (code, told) => {
  expect(report(code)).toEqual({ exitCode: 4, told })
})

test('memory#139 a damaged database and a fault of ours are told apart', () => {
  expect(report('SQLITE_CORRUPT')).toMatchObject({ exitCode: 4, told: expect.stringContaining('mem backup restore') })
  expect(report('E_ODD')).toMatchObject({ exitCode: 4, told: expect.stringContaining('a fault of mem') })
})
