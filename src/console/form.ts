import type { FastifyRequest } from 'fastify'
import { BodyError, parseJsonObject } from '../http/json-body.ts'
import { TOO_LARGE } from '../http/listener.ts'
import { invalidInput } from '../memory/errors.ts'

export interface Upload {
  name: string
  bytes: Buffer
}

/** What a form sent, however it was encoded. Empty fields count as absent. */
export class Form {
  readonly #values: ReadonlyMap<string, readonly unknown[]>
  readonly #uploads: ReadonlyMap<string, readonly Upload[]>

  constructor(values: ReadonlyMap<string, readonly unknown[]>, uploads: ReadonlyMap<string, readonly Upload[]>) {
    this.#values = values
    this.#uploads = uploads
  }

  /** As JSON brought it; text from a form. */
  value(name: string): unknown {
    return this.#values.get(name)?.[0]
  }

  /** Every field with its first value as text, in order. */
  fields(): [name: string, value: string][] {
    return [...this.#values.keys()].map((name) => [name, this.raw(name) ?? ''])
  }

  /** The field's text as it came, empty included. */
  raw(name: string): string | undefined {
    const value = this.value(name)
    return value === undefined || typeof value === 'string' ? value : JSON.stringify(value)
  }

  text(name: string): string | undefined {
    const text = this.raw(name)?.trim()
    return text === '' ? undefined : text
  }

  /** @throws invalid_input 400 that names the field. */
  require(name: string): string {
    const text = this.text(name)
    if (text === undefined) throw invalidInput(`${name} is required`, name)
    return text
  }

  /** Text of several lines. Forms send line ends as CRLF, which stand for LF. @throws invalid_input 400 when absent. */
  lines(name: string): string {
    const text = this.raw(name)
    if (text === undefined) throw invalidInput(`${name} is required`, name)
    return text.replaceAll('\r\n', '\n')
  }

  /** A ticked box. */
  flag(name: string): boolean {
    return ['on', 'true', '1'].includes(this.text(name) ?? '')
  }

  /** @throws invalid_input 400 when it is not a number. */
  number(name: string): number | undefined {
    const text = this.text(name)
    const number = Number(text)
    if (text !== undefined && Number.isNaN(number)) throw invalidInput(`${name} must be a number`, name)
    return text === undefined ? undefined : number
  }

  /** @throws invalid_input 400 when it is not a JSON object. */
  object(name: string): Record<string, unknown> | undefined {
    const text = this.text(name)
    if (text === undefined) return undefined
    try {
      return parseJsonObject(Buffer.from(text))
    } catch {
      throw invalidInput(`${name} must be a JSON object`, name)
    }
  }

  uploads(name: string): readonly Upload[] {
    return this.#uploads.get(name) ?? []
  }
}

/** Reads a form of any encoding, or a JSON object. @throws invalid_input 400 when it is too large or cannot be read. */
export async function readForm({ body, headers }: FastifyRequest): Promise<Form> {
  if (body === TOO_LARGE) throw invalidInput('the request is larger than 8 MiB')
  const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0)
  const type = headers['content-type'] ?? ''
  const form = /^multipart\/form-data/i.test(type)
    ? await readMultipart(bytes, type)
    : /^application\/json/i.test(type)
      ? readJson(bytes)
      : group([...new URLSearchParams(bytes.toString('utf8'))], [])
  return form
}

async function readMultipart(bytes: Buffer, type: string): Promise<Form> {
  try {
    const data = await new Response(new Uint8Array(bytes), { headers: { 'content-type': type } }).formData()
    const values: [string, unknown][] = []
    const uploads: [string, Upload][] = []
    for (const [name, part] of data) {
      if (typeof part === 'string') values.push([name, part])
      // A file field left empty arrives as a file without name and bytes.
      else if (part.name !== '' || part.size > 0) {
        uploads.push([name, { name: part.name, bytes: Buffer.from(await part.arrayBuffer()) }])
      }
    }
    return group(values, uploads)
  } catch (error) {
    if (error instanceof TypeError) throw invalidInput('the form could not be read as multipart/form-data')
    throw error
  }
}

function readJson(bytes: Buffer): Form {
  try {
    return group(Object.entries(parseJsonObject(bytes)), [])
  } catch (error) {
    if (error instanceof BodyError) throw invalidInput(error.message)
    throw error
  }
}

function group(values: readonly (readonly [string, unknown])[], uploads: readonly (readonly [string, Upload])[]): Form {
  const bad = values.find(([name, value]) => name.includes('\0') || (typeof value === 'string' && value.includes('\0')))
  if (bad) throw invalidInput(`${bad[0].replaceAll('\0', '')} holds the character U+0000`, bad[0].replaceAll('\0', ''))
  return new Form(collect(values), collect(uploads))
}

function collect<T>(entries: readonly (readonly [string, T])[]): Map<string, T[]> {
  const map = new Map<string, T[]>()
  for (const [name, value] of entries) {
    const known = map.get(name)
    if (known) known.push(value)
    else map.set(name, [value])
  }
  return map
}
