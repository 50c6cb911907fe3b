import { createHash } from 'node:crypto'
import { errorText } from '../../base/errors.ts'
import { BodyError, refuseBad } from '../../http/json-body.ts'
import { MemoryError } from '../errors.ts'
import { parseWith } from '../routes/route.ts'
import { ExportCheck } from './check.ts'
import {
  endSchema,
  ExportError,
  FORMAT,
  FORMAT_VERSION,
  headerSchema,
  recordSchema,
  type ExportRecord,
} from './format.ts'
import { readLines, type Line } from './lines.ts'

export interface Entry {
  /** Of the file, from 1. */
  line: number
  record: ExportRecord
}

/**
 * The chains of an export, which say what workspaces are in it. Whoever reads to the end knows by the digest that the file is
 * as it was written; what its records say is not looked at, in a fifth of the time. @throws ExportError that names the line
 */
export async function* readChains(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Entry> {
  yield* readRecords(bytes, isOther, { accept: () => undefined, end: () => undefined })
}

/** A line as we write it, and no chain and no end. Others are looked into. */
function isOther({ bytes }: Line): boolean {
  const begin = Buffer.from(bytes.subarray(0, 16)).toString('latin1')
  return /^\{"type":"(?!chain"|end")/.test(begin)
}

/**
 * The records of an export, each checked by itself and against those before it, chain and digests included. Whoever reads to
 * the end has read a whole export. @throws ExportError that names the line
 */
export async function* readExport(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Entry> {
  yield* readRecords(bytes, () => false, new ExportCheck())
}

async function* readRecords(
  bytes: AsyncIterable<Uint8Array>,
  isPassedOver: (line: Line) => boolean,
  check: Pick<ExportCheck, 'accept' | 'end'>,
): AsyncGenerator<Entry> {
  const hash = createHash('sha256')
  let records = -1
  let ended = false
  for await (const line of readLines(bytes)) {
    const { number, bytes: raw } = line
    if (ended) throw at(number, 'something follows the end record')
    const value = records >= 0 && isPassedOver(line) ? undefined : parseLine(line)
    if (value && records < 0) checkHeader(value)
    else if (value && isEnd(value)) {
      checkEnd(number, value, records, hash.digest('hex'))
      within(number, () => check.end())
      ended = true
      continue
    } else if (value) {
      const record = within(number, () => parseWith(recordSchema, value))
      within(number, () => check.accept(record))
      yield { line: number, record }
    }
    hash.update(raw).update('\n')
    records++
  }
  if (records < 0) throw new ExportError('it is empty')
  if (!ended) throw new ExportError(`it ends behind line ${records + 1} without its end record: it is not whole`)
}

const at = (line: number, message: string): ExportError => new ExportError(`line ${line}: ${message}`)

/** Runs `work` on a line, so that a refusal names it. */
function within<T>(line: number, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof ExportError || error instanceof MemoryError || error instanceof BodyError)
      throw at(line, error.message)
    throw error
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
/** Only escapes can bring them into a string of valid UTF-8. */
const SUSPECT = /\\u(?:0000|[dD][89a-fA-F])/

function parseLine({ number, bytes, hasEnd }: Line): object {
  try {
    const text = utf8.decode(bytes)
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null) throw new BodyError('not an object')
    refuseBad(value, SUSPECT.test(text))
    return value
  } catch (error) {
    if (number === 1) throw notOurs()
    if (!hasEnd) throw at(number, 'the file is cut off here')
    throw at(number, `it is no record: ${errorText(error)}`)
  }
}

const notOurs = (): ExportError =>
  new ExportError(`it is no export of mem: its first line is no header of the format ${FORMAT}`)

function checkHeader(value: object): void {
  const header = headerSchema.safeParse(value)
  if (!header.success) throw notOurs()
  if (header.data.version > FORMAT_VERSION) {
    throw new ExportError(
      `it is in version ${header.data.version} of the format, and this program reads up to ${FORMAT_VERSION}: upgrade mem`,
    )
  }
}

const isEnd = (value: object): boolean => 'type' in value && value.type === 'end'

function checkEnd(line: number, value: object, records: number, sha256: string): void {
  const end = within(line, () => parseWith(endSchema, value))
  if (end.records !== records) throw at(line, `it should be behind ${end.records} records, and ${records} are there`)
  if (end.sha256 !== sha256) throw at(line, 'the digest is another one: something in the file was changed')
}
