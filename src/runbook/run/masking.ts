import { isList, isMap, mapOf, ValueSet, type Value } from '../hcl/values.ts'

const MASK = '***'

/** Below this many characters a secret is masked only as a whole string. Contract: runbook.md 5.2. */
const SHORT = 4

/** Hides secrets wherever they occur: as they are, URL-encoded, JSON-escaped or inside Base64. */
export class Masking {
  private readonly whole = new Set<string>()
  private readonly parts = new Set<string>()
  private pattern: RegExp | undefined

  add(secret: string): void {
    if (secret === '' || this.whole.has(secret)) return
    this.whole.add(secret)
    if (secret.length < SHORT) return
    for (const form of forms(secret)) this.parts.add(form)
    const longestFirst = [...this.parts].sort((a, b) => b.length - a.length)
    this.pattern = new RegExp(longestFirst.map(escapePattern).join('|'), 'g')
  }

  text(text: string): string {
    if (this.whole.has(text)) return MASK
    return this.pattern ? text.replace(this.pattern, MASK) : text
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

function forms(secret: string): string[] {
  const encoded = encodeURIComponent(secret)
  return [secret, encoded, encoded.replaceAll('%20', '+'), JSON.stringify(secret).slice(1, -1), ...base64Forms(secret)]
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

const escapePattern = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&')
