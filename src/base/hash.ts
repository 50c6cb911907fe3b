import { createHash, hash, timingSafeEqual } from 'node:crypto'

export const md5 = (text: string): string => hash('md5', text)

export const sha256 = (data: string | Uint8Array): string => hash('sha256', data)

/** Compares two secrets in time that does not depend on where, or whether by length, they differ. */
export function secretEquals(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(a), digest(b))
}
