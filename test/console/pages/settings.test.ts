import { X509Certificate } from 'node:crypto'
import { expect, test } from 'vitest'
import { certificateFacts } from '../../../src/console/pages/settings.ts'
import { PAIRS } from '../../config/pairs.ts'

const DAY_MS = 86_400_000

test('fingerprint, validity, and a warning 30 days before the end', () => {
  const { cert } = PAIRS.a
  const { validTo, fingerprint256 } = new X509Certificate(cert)
  const end = Date.parse(validTo)
  const at = (now: number) => certificateFacts(cert, { now: () => now })
  expect(at(end - 31 * DAY_MS)).toMatchObject({ fingerprint: fingerprint256, isEnding: false, daysLeft: 31 })
  expect(at(end - 29 * DAY_MS)).toMatchObject({ isEnding: true, daysLeft: 29 })
  expect(at(end + DAY_MS)).toMatchObject({ isEnding: true, daysLeft: -1 })
})
