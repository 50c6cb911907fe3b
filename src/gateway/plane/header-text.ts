const MOST = 512

/** What a header can carry of a text: what is no printable ASCII is percent-encoded, as UTF-8 (RFC 3986). */
export const printable = (text: string): string =>
  text
    .slice(0, MOST)
    .toWellFormed()
    .replace(/[^\x20-\x7e]+/g, encodeURIComponent)

/** As many names as fit. */
export function listed(names: readonly string[]): string {
  let text = ''
  for (const name of names) {
    const longer = text === '' ? printable(name) : `${text},${printable(name)}`
    if (longer.length > MOST) break
    text = longer
  }
  return text
}
