import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'
import { errorText } from '../base/errors.ts'
import { parseAddress } from './address.ts'
import { isCertifiable, keepPair } from './certificates.ts'
import { ConfigError } from './errors.ts'
import type { Config } from './load.ts'
import type { Pair } from './self-sign.ts'

const SELF_SIGNED = 'the TLS certificate is self-signed: other machines will not trust it'

/** Gives the warnings about the certificate to be served. Contract: memory.md 10.
 *  @throws ConfigError when TLS is enabled without a pair or `auto_self_signed`, or the pair cannot be used. */
export function checkTls(tls: Config['server']['tls'], loopback: boolean): string[] {
  if (!tls.enabled) return []
  const { cert_file, key_file, auto_self_signed } = tls
  if (cert_file === undefined && key_file === undefined && auto_self_signed) return loopback ? [] : [SELF_SIGNED]
  if (cert_file === undefined) throw missing('cert_file')
  if (key_file === undefined) throw missing('key_file')
  const cert = read('server.tls.cert_file', cert_file)
  const key = read('server.tls.key_file', key_file)
  const certificate = parsePair(cert, key)
  const warnings: string[] = []
  const mode = statSync(key_file).mode & 0o777
  if (mode & 0o077) {
    const written = mode.toString(8).padStart(4, '0')
    warnings.push(`server.tls.key_file ${key_file} is open to others (mode ${written}): chmod 600 ${key_file}`)
  }
  if (!loopback && isSelfSigned(certificate)) warnings.push(SELF_SIGNED)
  return warnings
}

/** The pair to serve; undefined without TLS. Makes a self-signed one when asked to and there is none that lasts.
 *  @throws ConfigError when there is none to use. Contract: memory.md 10. */
export async function readTls({ server: { tls, addr }, storage }: Config, now: number): Promise<Pair | undefined> {
  if (!tls.enabled) return undefined
  const { cert_file, key_file } = tls
  if (cert_file === undefined || key_file === undefined) {
    return keepSelfSigned(join(storage.data_dir, 'tls'), parseAddress(addr)?.host ?? '', now)
  }
  const pair = { cert: read('server.tls.cert_file', cert_file), key: read('server.tls.key_file', key_file) }
  parsePair(pair.cert, pair.key)
  return pair
}

async function keepSelfSigned(directory: string, host: string, now: number): Promise<Pair> {
  const everywhere = host === '' || host === '0.0.0.0' || host === '::'
  const name = everywhere ? hostname() : host
  try {
    return await keepPair(directory, { host: isCertifiable(name) ? name : 'localhost', sans: ['localhost'], now })
  } catch (error) {
    const key = 'server.tls.auto_self_signed'
    throw new ConfigError(key, `${key}: no certificate can be kept in ${directory}: ${errorText(error)}`)
  }
}

/** `checkIssued` would say no for want of the right to sign others. */
const isSelfSigned = (certificate: X509Certificate): boolean =>
  certificate.issuer === certificate.subject && certificate.verify(certificate.publicKey)

function missing(name: string): ConfigError {
  const key = `server.tls.${name}`
  return new ConfigError(
    key,
    `${key} is required with server.tls.enabled; \`mem init-cert\` makes a pair, or set auto_self_signed`,
  )
}

function read(key: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new ConfigError(key, `${key} ${path} cannot be read: ${errorText(error)}`)
  }
}

function parsePair(cert: string, key: string): X509Certificate {
  try {
    createSecureContext({ cert, key })
    const certificate = new X509Certificate(cert)
    // A context takes a key of another kind than the certificate's, and then serves neither.
    if (!certificate.checkPrivateKey(createPrivateKey(key))) throw new Error('the key is not that of the certificate')
    return certificate
  } catch (error) {
    const name = 'server.tls.cert_file'
    throw new ConfigError(name, `${name} and server.tls.key_file are no usable pair: ${errorText(error)}`)
  }
}
