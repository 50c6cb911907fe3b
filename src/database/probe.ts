import { errorText } from '../base/errors.ts'
import type { Database } from './database.ts'

const PROBE_MS = 2000

/** `ok` or `down: <reason>`, within two seconds. */
export async function probe(store: Pick<Database, 'ping'> | undefined): Promise<string> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${PROBE_MS} ms`)), PROBE_MS)
  })
  try {
    await Promise.race([store?.ping(), late])
    return 'ok'
  } catch (error) {
    return `down: ${withoutCredentials(errorText(error))}`
  } finally {
    clearTimeout(timer)
  }
}

/** A driver may quote its URL. */
const withoutCredentials = (text: string): string => text.replace(/:\/\/[^@\s/]*@/g, '://***@')
