import { createPrivateKey, KeyObject, webcrypto, X509Certificate } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'

/** A certificate and its private key (PKCS#8), PEM. */
export interface Pair {
  cert: string
  key: string
}

interface PairFiles {
  certFile: string
  keyFile: string
}

interface CertificateOptions {
  /** The subject; a name or an IP address. */
  host: string
  /** Other names and addresses to be valid for. */
  sans?: readonly string[]
  /** RSA 4096 instead of ECDSA P-256. */
  rsa?: boolean
  /** Epoch ms. */
  now: number
}

const DAY_MS = 86_400_000
const VALID_MS = 365 * DAY_MS
/** Clocks of clients may be a little behind. */
const BACKDATED_MS = 5 * 60_000
const RENEWED_MS = 30 * DAY_MS

const ECDSA = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const RSA = {
  name: 'RSASSA-PKCS1-v1_5',
  modulusLength: 4096,
  publicExponent: new Uint8Array([1, 0, 1]),
  hash: 'SHA-256',
}

/** A self-signed certificate with a random serial number of 128 bits, for servers and clients. Contract: memory.md 11.2. */
export async function createPair({ host, sans = [], rsa = false, now }: CertificateOptions): Promise<Pair> {
  // Some 200 ms to load: only who makes a certificate pays them.
  await import('reflect-metadata')
  const x509 = await import('@peculiar/x509')
  const signingAlgorithm = rsa ? RSA : ECDSA
  const keys = await webcrypto.subtle.generateKey(signingAlgorithm, true, ['sign', 'verify'])
  const { digitalSignature, keyEncipherment } = x509.KeyUsageFlags
  const notBefore = new Date(now - BACKDATED_MS)
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [host] }],
    notBefore,
    notAfter: new Date(notBefore.getTime() + VALID_MS),
    signingAlgorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(rsa ? digitalSignature | keyEncipherment : digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth, x509.ExtendedKeyUsage.clientAuth]),
      new x509.SubjectAlternativeNameExtension(
        alternativeNames(host, sans).map((value) => ({ type: isIP(value) ? 'ip' : 'dns', value })),
      ),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return {
    cert: `${certificate.toString('pem')}\n`,
    key: KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

const alternativeNames = (host: string, sans: readonly string[]): string[] => [
  ...new Set([host, '127.0.0.1', '::1', ...(isIP(host) ? [] : [`*.${host}`]), ...sans]),
]

/** Whether a certificate can be made out to it: an IP address without zone, or a DNS name in ASCII. */
export const isCertifiable = (name: string): boolean =>
  name.length <= 253 && ((isIP(name) > 0 && !name.includes('%')) || /^(\*\.)?[\w-]+(\.[\w-]+)*$/.test(name))

/** Writes `server.crt` (0644) and `server.key` (0600), over older ones; a reader never meets half a file. */
export function writePair(directory: string, { cert, key }: Pair): PairFiles {
  const { certFile, keyFile } = filesIn(directory)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
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
