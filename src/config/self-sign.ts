import 'reflect-metadata' // before x509, which needs it
import { KeyObject, webcrypto } from 'node:crypto'
import { isIP } from 'node:net'
import * as x509 from '@peculiar/x509'

/** A certificate and its private key (PKCS#8), PEM. */
export interface Pair {
  cert: string
  key: string
}

export interface CertificateOptions {
  /** The subject; a name or an IP address. */
  host: string
  /** Other names and addresses to be valid for. */
  sans?: readonly string[]
  /** RSA 4096 instead of ECDSA P-256. */
  rsa?: boolean
  /** Epoch ms. */
  now: number
}

const VALID_MS = 365 * 86_400_000
/** Clocks of clients may be a little behind. */
const BACKDATED_MS = 5 * 60_000

const ECDSA = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const RSA = {
  name: 'RSASSA-PKCS1-v1_5',
  modulusLength: 4096,
  publicExponent: new Uint8Array([1, 0, 1]),
  hash: 'SHA-256',
}

/** A self-signed certificate with a random serial number of 128 bits, for servers and clients. Contract: memory.md 11.2. */
export async function createPair({ host, sans = [], rsa = false, now }: CertificateOptions): Promise<Pair> {
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
