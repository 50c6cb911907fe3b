import { createHmac, timingSafeEqual } from 'node:crypto'
import * as z from 'zod'
import { invalid } from '../errors.ts'
import type { Key } from '../store/records.ts'

/** Where a list goes on, signed: a client can neither make one nor use that of another list. Contract: kernel-1.md 1.7. */

const key = z.array(z.union([z.string(), z.number()]))

const sign = (secret: string, list: string, payload: string): Buffer =>
  createHmac('sha256', secret).update(`${list}\n${payload}`).digest()

/** @param list what it is a place in: route, scope and filters */
export function writeCursor(secret: string, list: string, place: Key): string {
  const payload = Buffer.from(JSON.stringify(place)).toString('base64url')
  return `${payload}.${sign(secret, list, payload).toString('base64url')}`
}

/** @throws invalid when it is not one that was given out for this list */
export function readCursor(secret: string, list: string, cursor: string): Key {
  const [payload = '', signature = '', ...more] = cursor.split('.')
  const given = Buffer.from(signature, 'base64url')
  const right = sign(secret, list, payload)
  if (more.length > 0 || given.length !== right.length || !timingSafeEqual(given, right)) {
    throw invalid('cursor is not one that this list gave out')
  }
  return key.parse(JSON.parse(Buffer.from(payload, 'base64url').toString()))
}
