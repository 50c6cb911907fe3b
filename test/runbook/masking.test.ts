import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Masking } from '../../src/runbook/run/masking.ts'

const secret = fc.string({ unit: 'grapheme', minLength: 4, maxLength: 40 }).filter((text) => text.trim().length >= 4)
const around = fc.string({ unit: 'grapheme-ascii', maxLength: 7 })

/** Every way in which a secret may leave a program. */
const ENCODINGS: Record<string, (text: string) => string> = {
  plain: (text) => text,
  json: (text) => JSON.stringify(text),
  'json in json': (text) => JSON.stringify(JSON.stringify(text)),
  url: encodeURIComponent,
  form: (text) => new URLSearchParams({ k: text }).toString(),
  base64: (text) => Buffer.from(text).toString('base64'),
  base64url: (text) => Buffer.from(text).toString('base64url'),
}

test.each(Object.keys(ENCODINGS))('runbook#108 a secret is found as %s, wherever it stands', (name) => {
  const encode = ENCODINGS[name] ?? String
  const property = fc.property(secret, around, around, (text, before, after) => {
    const masking = new Masking()
    masking.add(text)
    const shown = masking.text(`${before}|${encode(`${before}${text}${after}`)}|${after}`)
    expect(shown).toContain('***')
    // what is left must not give it back; Base64 may keep the characters it shares with its neighbours
    const bare = encode(text).replace(/^"|"$|=+$|^k=/g, '')
    const core = name.startsWith('base64') ? bare.slice(0, -2) : bare
    expect(shown.includes(core) && core.length > 5 && !core.includes('***')).toBe(false)
  })
  fc.assert(property, { numRuns: 300, seed: 21 })
})
