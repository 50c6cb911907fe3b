import * as z from 'zod'
import { checkCustomHeader } from '../kinds/headers.ts'
import type { OpenCredential } from '../state/organization-state.ts'
import { byName } from './fields.ts'

/** What a custom header reads as, and what keeps its value. */
export const KEPT = '***'

const VALUE_MAX = 8192
const COUNT_MAX = 20

export const customHeaders = byName(
  z.string(),
  z.string().max(VALUE_MAX, `must have ${VALUE_MAX} characters at most`),
  COUNT_MAX,
  'headers',
)

/** The first header that is none, with what is wrong with it; undefined when all are good. Contract: gateway.md 10.3. */
export function headerFault(
  credential: Pick<OpenCredential, 'kind' | 'config'>,
  headers: Readonly<Record<string, string>>,
): { name: string; message: string } | undefined {
  const seen = new Set<string>()
  for (const [name, value] of Object.entries(headers)) {
    const message = seen.has(name.toLowerCase()) ? 'is given twice' : checkCustomHeader(credential, name, value)
    if (message !== undefined || name.length > 128) return { name, message: message ?? 'has more than 128 characters' }
    seen.add(name.toLowerCase())
  }
  return undefined
}
