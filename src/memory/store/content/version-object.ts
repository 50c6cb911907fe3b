/**
 * The object of a version: a line of JSON that says where its Cells are in the body, then the body as it is. A Cell is a
 * range of the body in UTF-16 units, or its text where the chunker made one that does not stand there.
 */
export interface VersionBody {
  content: string
  /** The texts of the version's Cells by `seq`; empty for a version that was no head when it was stored. */
  cells: readonly string[]
}

type Place = readonly [start: number, end: number] | string

/** How far behind the last Cell the next one is looked for. */
const GAP = 4096

/** What `decodeVersion` reads. */
export function encodeVersion({ content, cells }: VersionBody): Buffer {
  let from = 0
  let reach = 0
  const places = cells.map((text): Place => {
    const window = content.slice(from, reach + text.length + GAP)
    const found = window.indexOf(text)
    if (found < 0) return text
    from += found
    reach = from + text.length
    return [from, reach]
  })
  return Buffer.from(`${JSON.stringify({ format: 1, cells: places })}\n${content}`)
}

/** Undefined for what is no such object, or not whole in its first line; the body itself is known by its MD5. */
export function decodeVersion(bytes: Uint8Array): VersionBody | undefined {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
  const end = text.indexOf('\n')
  const content = text.slice(end + 1)
  try {
    const { format, cells }: { format: unknown; cells: Place[] } = JSON.parse(text.slice(0, end))
    if (format !== 1) return undefined
    return { content, cells: cells.map((place) => (typeof place === 'string' ? place : content.slice(...place))) }
  } catch {
    return undefined
  }
}
