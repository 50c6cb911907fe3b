import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import type * as Yaml from 'yaml'
import { errorText } from '../../../base/errors.ts'
import { FunctionError } from '../errors.ts'
import { encodeJson, fromJson, parseJson } from '../json.ts'
import { mapOf, type Value } from '../values.ts'
import { fixed, type Arguments, type FunctionTable } from './arguments.ts'

/** Loaded when a YAML function is first called, synchronously as evaluation is. */
const yaml = (): typeof Yaml => createRequire(import.meta.url)('yaml')

/** Contract: runbook.md 3.3, group encoding and hash. */
export const ENCODING_FUNCTIONS: FunctionTable = {
  jsonencode: fixed(1, (a) => encodeJson(a.any(0))),
  jsondecode: fixed(1, (a) => decoded('JSON', () => parseJson(a.text(0)))),
  yamlencode: fixed(1, (a) => yaml().stringify(JSON.parse(encodeJson(a.any(0))), { lineWidth: 0 })),
  yamldecode: fixed(1, (a) => {
    const { parse } = yaml()
    return decoded('YAML', () => fromJson(parse(a.text(0), { maxAliasCount: 100 })))
  }),
  csvdecode: fixed(1, (a) => decodeCsv(a.text(0))),
  base64encode: fixed(1, (a) => Buffer.from(a.text(0)).toString('base64')),
  base64decode: fixed(1, (a) => decodeBase64(a.text(0))),
  urlencode: fixed(1, (a) => encodeUrl(a.text(0))),
  urldecode: fixed(1, (a) => decoded('URL encoding', () => decodeURIComponent(a.text(0).replaceAll('+', ' ')))),
  md5: fixed(1, (a) => hash('md5', a)),
  sha1: fixed(1, (a) => hash('sha1', a)),
  sha256: fixed(1, (a) => hash('sha256', a)),
  sha512: fixed(1, (a) => hash('sha512', a)),
  base64sha256: fixed(1, (a) => createHash('sha256').update(a.text(0)).digest('base64')),
  uuidv5: fixed(2, (a) => uuidV5(a.text(0), a.text(1))),
}

function decoded(form: string, decode: () => Value): Value {
  try {
    return decode()
  } catch (error) {
    throw new FunctionError(`invalid ${form}: ${errorText(error).split('\n')[0]?.slice(0, 200)}`, 0)
  }
}

const hash = (algorithm: string, a: Arguments): string => createHash(algorithm).update(a.text(0)).digest('hex')

function decodeBase64(text: string): string {
  const bytes = Buffer.from(text, 'base64')
  if (bytes.toString('base64').replace(/=+$/, '') !== text.replace(/=+$/, ''))
    throw new FunctionError('invalid Base64', 0)
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new FunctionError('the decoded bytes are no UTF-8 text', 0)
  }
}

/** The form of query strings: a blank is `+`, and only letters, digits, `-_.~` stay. */
const encodeUrl = (text: string): string =>
  encodeURIComponent(text)
    .replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+')

const NAMESPACES: Record<string, string> = {
  dns: '6ba7b810-9dad-11d1-80b4-00c04fd430c8',
  url: '6ba7b811-9dad-11d1-80b4-00c04fd430c8',
  oid: '6ba7b812-9dad-11d1-80b4-00c04fd430c8',
  x500: '6ba7b814-9dad-11d1-80b4-00c04fd430c8',
}

/** RFC 9562, version 5. */
function uuidV5(namespace: string, name: string): string {
  const hex = (NAMESPACES[namespace] ?? namespace).replaceAll('-', '')
  if (!/^[0-9a-fA-F]{32}$/.test(hex)) throw new FunctionError('the namespace is dns, url, oid, x500 or a UUID', 0)
  const bytes = createHash('sha1').update(Buffer.from(hex, 'hex')).update(name).digest().subarray(0, 16)
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x50
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** RFC 4180 with a header line: a list of maps. */
function decodeCsv(text: string): Value {
  const [header = [], ...rows] = csvRows(text)
  if (new Set(header).size !== header.length) throw new FunctionError('the header repeats a column', 0)
  return rows.map((row, i) => {
    if (row.length !== header.length)
      throw new FunctionError(`row ${i + 2} has ${row.length} fields, not ${header.length}`, 0)
    return mapOf(row.map((field, j) => [header[j] ?? '', field]))
  })
}

const CSV_FIELD = /(?:"([^"]*(?:""[^"]*)*)"|([^",\r\n]*))(,|\r?\n|$)/y

function csvRows(text: string): string[][] {
  const rows: string[][] = []
  let row: string[] = []
  CSV_FIELD.lastIndex = 0
  while (CSV_FIELD.lastIndex < text.length || row.length > 0) {
    const match = CSV_FIELD.exec(text)
    if (!match) throw new FunctionError(`invalid CSV in row ${rows.length + 1}`, 0)
    const [, quoted, plain = '', end] = match
    row.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'))
    if (end === ',') continue
    if (row.length > 1 || row[0] !== '' || quoted !== undefined) rows.push(row)
    row = []
  }
  return rows
}
