import { createPrivateKey, X509Certificate } from 'node:crypto'
import { chmodSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { makeDirectorySync } from '../base/directory.ts'
import type { CertificateOptions, Pair } from './self-sign.ts'

interface PairFiles {
  certFile: string
  keyFile: string
}

const RENEWED_MS = 30 * 86_400_000

/** Whether a certificate can be made out to it: an IP address without zone, or a DNS name in ASCII. */
export const isCertifiable = (name: string): boolean =>
  name.length <= 253 && ((isIP(name) > 0 && !name.includes('%')) || /^(\*\.)?[\w-]+(\.[\w-]+)*$/.test(name))

/** Writes `server.crt` (0644) and `server.key` (0600), over older ones; a reader never meets half a file. */
export function writePair(directory: string, { cert, key }: Pair): PairFiles {
  const { certFile, keyFile } = filesIn(directory)
  makeDirectorySync(directory)
  writeWhole(keyFile, key, 0o600)
  writeWhole(certFile, cert, 0o644)
  return { certFile, keyFile }
}

function writeWhole(path: string, text: string, mode: number): void {
  const draft = `${path}.new`
  writeFileSync(draft, text, { mode })
  chmodSync(draft, mode) // past the umask, and for a draft that was there
  renameSync(draft, path)
}

const filesIn = (directory: string): PairFiles => ({
  certFile: join(directory, 'server.crt'),
  keyFile: join(directory, 'server.key'),
})

/** The pair in `directory`, made anew unless there is one that lasts 30 days more. Contract: memory.md 10. */
export async function keepPair(directory: string, options: CertificateOptions): Promise<Pair> {
  const kept = readPair(filesIn(directory))
  if (kept && endOf(kept) - RENEWED_MS > options.now) return kept
  // Some 200 ms to load: only who makes a certificate pays them.
  const { createPair } = await import('./self-sign.ts')
  const pair = await createPair(options)
  writePair(directory, pair)
  return pair
}

function readPair({ certFile, keyFile }: PairFiles): Pair | undefined {
  if (!existsSync(certFile) || !existsSync(keyFile)) return undefined
  return { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') }
}

/** Epoch ms; 0 when the two do not belong together, as after a crash between two writes. */
function endOf({ cert, key }: Pair): number {
  try {
    const certificate = new X509Certificate(cert)
    return certificate.checkPrivateKey(createPrivateKey(key)) ? Date.parse(certificate.validTo) : 0
  } catch {
    return 0
  }
}
