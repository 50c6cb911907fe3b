import 'reflect-metadata' // before x509, which needs it
import { KeyObject, webcrypto } from 'node:crypto'
import { isIP } from 'node:net'
import * as x509 from '@peculiar/x509'
import type { Pair } from '../../src/config/self-sign.ts'

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const HOUR = 3_600_000

export interface Authority {
  /** Its certificate, PEM. */
  readonly ca: string
  /** A certificate for hosts of a server, or for the name of a client. */
  issue(name: string, hosts?: readonly string[]): Promise<Pair>
}

/** A certificate authority of a test's own. */
export async function createAuthority(): Promise<Authority> {
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const dates = { notBefore: new Date(Date.now() - HOUR), notAfter: new Date(Date.now() + HOUR) }
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    name: 'CN=test authority',
    ...dates,
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 1, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
    ],
  })
  return {
    ca: root.toString('pem'),
    issue: async (name, hosts = []) => {
      const own = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
      const names = hosts.map((value) => ({ type: isIP(value) ? ('ip' as const) : ('dns' as const), value }))
      const certificate = await x509.X509CertificateGenerator.create({
        subject: [{ CN: [name] }],
        issuer: root.subject,
        ...dates,
        signingAlgorithm: ALGORITHM,
        signingKey: keys.privateKey,
        publicKey: own.publicKey,
        extensions: names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : [],
      })
      return {
        cert: certificate.toString('pem'),
        key: KeyObject.from(own.privateKey).export({ type: 'pkcs8', format: 'pem' }).toString(),
      }
    },
  }
}
