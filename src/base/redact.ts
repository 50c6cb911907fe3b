const GONE = '[REDACTED]'

/** Each is linear in the text: what may fail is bounded, or begins a run only once. */
const PATTERNS: readonly (readonly [pattern: RegExp, by: string])[] = [
  [/(mst|mrt|mvk|mmt)_[\w-]{43,}/g, `$1_${GONE}`],
  [/-----BEGIN [A-Z0-9 ]{0,40}KEY-----[^]*?(?:-----END [A-Z0-9 ]{0,40}KEY-----|$)/g, GONE],
  [/((?:proxy-)?authorization\b\\?["']?[ \t]{0,8}[:=][ \t]{0,8}\\?["']?)[^\r\n"'\\]+/gi, `$1${GONE}`],
  [/(cookie\b\\?["']?[ \t]{0,8}[:=][ \t]{0,8}\\?["']?)[^\r\n"'\\]+/gi, `$1${GONE}`],
  [/((?:api[-_]?key|security-token)\b\\?["']?[ \t]{0,8}[:=][ \t]{0,8}\\?["']?)[^\s"'\\,;]+/gi, `$1${GONE}`],
  [/(bearer[ \t]{1,8})[\w.~+/=-]{20,}/gi, `$1${GONE}`],
  [/(?<=^|[^A-Za-z0-9]|\\[nrt])sk-[\w*-]{8,}/g, `sk-${GONE}`],
  [/gsk_[\w*-]{16,}/g, `gsk_${GONE}`],
  [/AIza[\w*-]{8,}/g, `AIza${GONE}`],
  [/(AKIA|ASIA)[A-Z0-9]{12,}/g, `$1${GONE}`],
]

/** What one of them must hold: most texts do not, and are looked through once instead of a dozen times. */
const SUSPICIOUS =
  /m(?:[sr]t|vk|mt)_|-----BEGIN|authorization|cookie|api[-_]?key|security-token|bearer|sk[-_]|AIza|A(?:K|S)IA|eyJ/i

/** Words with a point in them, in which a JWT may stand. */
const WORD = /[\w.-]{24,}/g

/**
 * A text without the credentials that got into it: of headers and cookies, our tokens, keys by the shapes that providers
 * give them, JWTs, private keys. In linear time. Contract: gateway.md 9.
 */
export function redact(text: string): string {
  if (!SUSPICIOUS.test(text)) return text
  const plain = PATTERNS.reduce((rest, [pattern, by]) => rest.replace(pattern, by), text)
  return plain.replace(WORD, withoutJwt)
}

function withoutJwt(word: string): string {
  const at = word.indexOf('eyJ')
  return at >= 0 && word.indexOf('.', at + 8) > 0 ? word.slice(0, at) + GONE : word
}
