/** The vector scaled to unit length; a zero vector stays zero. */
export function unitVector(values: ArrayLike<number>): Float32Array {
  const vector = new Float32Array(values.length)
  let squares = 0
  for (let i = 0; i < values.length; i++) squares += (values[i] ?? 0) ** 2
  const scale = squares > 0 ? 1 / Math.sqrt(squares) : 0
  for (let i = 0; i < values.length; i++) vector[i] = (values[i] ?? 0) * scale
  return vector
}

/** The longest begin of at most `maxBytes` of UTF-8 that ends between code points. */
export function cutToBytes(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text
  return text.slice(0, new TextEncoder().encodeInto(text, new Uint8Array(maxBytes)).read)
}
