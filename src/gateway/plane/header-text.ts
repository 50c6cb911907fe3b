const MOST = 512

/** What a header can carry of a text. */
export const printable = (text: string): string => text.replace(/[^\x20-\x7e]/g, '?').slice(0, MOST)

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
