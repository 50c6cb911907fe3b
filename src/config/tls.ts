import { X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { errorText } from '../base/errors.ts'
import { ConfigError } from './errors.ts'
import type { Config } from './load.ts'

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
  if (!loopback && certificate.checkIssued(certificate)) warnings.push(SELF_SIGNED)
  return warnings
}

/** The pair to serve, PEM; undefined without TLS. @throws ConfigError when there is none to read. */
export function readTls(tls: Config['server']['tls']): { cert: string; key: string } | undefined {
  if (!tls.enabled) return undefined
  const { cert_file, key_file } = tls
  if (cert_file === undefined || key_file === undefined) {
    const key = 'server.tls.auto_self_signed'
    throw new ConfigError(key, `${key} is not part of this version; set server.tls.cert_file and server.tls.key_file`)
  }
  return { cert: read('server.tls.cert_file', cert_file), key: read('server.tls.key_file', key_file) }
}

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
    return new X509Certificate(cert)
  } catch (error) {
    const name = 'server.tls.cert_file'
    throw new ConfigError(name, `${name} and server.tls.key_file are no usable pair: ${errorText(error)}`)
  }
}
