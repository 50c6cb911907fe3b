/**
 * The same string, holding on to nothing else: what `match` or `slice` cuts out of a text keeps the whole text in memory.
 * For strings that outlive the text they come from.
 */
export function detached(part: string): string {
  return part.length < SHARED_FROM ? part : Buffer.from(part, 'utf16le').toString('utf16le')
}

/** V8 copies shorter parts anyway. */
const SHARED_FROM = 13
