import { isMap } from '../../base/json.ts'
import type { Json } from '../chat/json.ts'

/** How vectors are written: numbers, or their bytes as little-endian float32. */
export type Encoding = 'float' | 'base64'

/** Whether these are vectors, one at least, as OpenAI answers them. */
export const isVectors = (answer: Json): boolean =>
  Array.isArray(answer['data']) &&
  answer['data'].length > 0 &&
  answer['data'].every(
    (each) => isMap(each) && (Array.isArray(each['embedding']) || typeof each['embedding'] === 'string'),
  )

/** Brings the vectors of an answer into an encoding, in place. @returns whether any had another. */
export function encodeVectors(answer: Json, encoding: Encoding): boolean {
  let isChanged = false
  for (const each of Array.isArray(answer['data']) ? answer['data'] : []) {
    if (!isMap(each)) continue
    const vector = each['embedding']
    if (encoding === 'base64' && Array.isArray(vector)) each['embedding'] = toBase64(vector.map(Number))
    else if (encoding === 'float' && typeof vector === 'string') each['embedding'] = fromBase64(vector)
    else continue
    isChanged = true
  }
  return isChanged
}

export function toBase64(vector: readonly number[]): string {
  const bytes = Buffer.allocUnsafe(vector.length * 4)
  for (const [i, value] of vector.entries()) bytes.writeFloatLE(value, i * 4)
  return bytes.toString('base64')
}

function fromBase64(text: string): number[] {
  const bytes = Buffer.from(text, 'base64')
  return Array.from({ length: Math.floor(bytes.length / 4) }, (_, i) => bytes.readFloatLE(i * 4))
}
