import { isUtf8 } from 'node:buffer'
import { invalidInput } from '../../memory/errors.ts'
import type { Form } from '../form.ts'

/** The records of a bulk request: a file or the field `records`, JSONL or a JSON array. @throws invalid_input 400. */
export function readRecords(form: Form): unknown[] {
  const [file] = form.uploads('file')
  const sent = file ? decode(file.bytes) : (form.value('records') ?? form.text('file'))
  if (Array.isArray(sent)) return sent
  const text = typeof sent === 'string' ? sent.replace(/^\ufeff/, '').trim() : ''
  if (text === '') throw invalidInput('file or records is required', 'file')
  if (text.startsWith('[')) {
    const list = parse(text, 'the file')
    if (Array.isArray(list)) return list
  }
  return text
    .split('\n')
    .map((line, index) => [line.trim(), index + 1] as const)
    .filter(([line]) => line !== '')
    .map(([line, number]) => parse(line, `line ${number}`))
}

function decode(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw invalidInput('the file is not UTF-8 text', 'file')
  return bytes.toString('utf8')
}

function parse(text: string, where: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw invalidInput(`${where} is not valid JSON`, 'file')
  }
}
