import { isList, isMap, mapOf, ValueSet, type Value } from '../hcl/values.ts'

const MASK = '***'

/** Below this many characters a secret is masked only as a whole string. Contract: runbook.md 5.2. */
export const SHORT = 4

/** Hides secrets wherever they occur: as they are, URL-encoded, JSON-escaped or inside Base64. */
export class Masking {
  private readonly whole = new Set<string>()
  private readonly parts = new Set<string>()
  /** Of all parts; made again when it is needed after a change. */
  private pattern: RegExp | undefined

  add(secret: string): void {
    if (secret === '' || this.whole.has(secret)) return
    this.whole.add(secret)
    if (secret.length < SHORT) return
    for (const form of forms(secret)) this.parts.add(form)
    this.pattern = undefined
  }

  text(text: string): string {
    if (this.whole.has(text)) return MASK
    if (this.parts.size === 0) return text
    const longestFirst = (): string[] => [...this.parts].sort((a, b) => b.length - a.length)
    this.pattern ??= new RegExp(longestFirst().map(escapePattern).join('|'), 'g')
    return text.replace(this.pattern, MASK)
  }

  /** The value with every text in it masked, keys included. */
  value(value: Value): Value {
    if (this.whole.size === 0) return value
    if (typeof value === 'string') return this.text(value)
    if (typeof value === 'number' && this.whole.has(String(value))) return MASK
    if (value instanceof ValueSet) return value.items.map((item) => this.value(item))
    if (isList(value)) return value.map((item) => this.value(item))
    if (isMap(value)) return mapOf(Object.entries(value).map(([key, item]) => [this.text(key), this.value(item)]))
    return value
  }
}

const forms = (secret: string): string[] => [...exactForms(secret), ...base64Forms(secret)]

/** The secret and its encodings that stand in a text as a whole, always in the same order. */
export const exactForms = (secret: string): string[] => [secret, ...urlForms(secret), ...jsonForms(secret)]

/** As part of a query, of a form, of a path; programs differ in the case of the digits. */
function urlForms(secret: string): string[] {
  const text = Buffer.from(secret).toString() // half a surrogate pair can't be encoded
  const encoded = encodeURIComponent(text)
  const form = new URLSearchParams([['', secret]]).toString().slice(1)
  const found = [encoded, encoded.replaceAll('%20', '+'), form, encodeURI(text)]
  return [...found, ...found.map((each) => each.replace(/%[\dA-F]{2}/g, (digits) => digits.toLowerCase()))]
}

/** Escaped, in ASCII alone, and once more as JSON inside JSON. */
function jsonForms(secret: string): string[] {
  const escape = (text: string): string => JSON.stringify(text).slice(1, -1)
  const code = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  const once = escape(secret)
  return [once, once.replace(/[\u0080-\uffff]/g, code), escape(once)]
}

/** The characters of Base64 that depend on the secret alone, for each of the three places it can start at. */
function base64Forms(secret: string): string[] {
  const bytes = Buffer.from(secret)
  return [0, 1, 2].flatMap((shift) => {
    const padded = Buffer.concat([Buffer.alloc(shift), bytes])
      .toString('base64')
      .replace(/=+$/, '')
    const from = Math.ceil((shift * 8) / 6)
    const to = Math.floor(((shift + bytes.length) * 8) / 6)
    const core = padded.slice(from, to)
    return core.length < SHORT ? [] : [core, core.replaceAll('+', '-').replaceAll('/', '_')]
  })
}

export const escapePattern = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&')
