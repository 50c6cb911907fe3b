import { execFileSync } from 'node:child_process'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { runCli } from '../run-cli.ts'

const directory = mkdtempSync(join(tmpdir(), 'mem-cli-init-cert-'))
afterAll(() => rmSync(directory, { recursive: true }))

const openssl = (...args: string[]): string => execFileSync('openssl', args, { encoding: 'utf8' })
const hasOpenssl = (() => {
  try {
    return openssl('version').startsWith('OpenSSL 3')
  } catch {
    return false
  }
})()

/** What `init-cert` prints as JSON. */
interface Made {
  cert_file: string
  key_file: string
  fingerprint: string
  config: { server: { tls: object } }
}

async function initCert(...args: string[]): Promise<Made> {
  const { code, stdout, stderr } = await runCli(['-o', 'json', 'init-cert', ...args], { env: { HOME: directory } })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const made: Made = JSON.parse(stdout)
  return made
}

describe('memory#142', () => {
  test('memory#142 writes to ~/.mem/tls, prints paths, fingerprint and a snippet', async () => {
    const { code, stdout } = await runCli(['init-cert', '--host', 'mem.example'], { env: { HOME: directory } })
    expect(code).toBe(0)
    const tls = join(directory, '.mem/tls')
    const [crt, key] = [join(tls, 'server.crt'), join(tls, 'server.key')]
    expect([crt, key].map((path) => statSync(path).mode & 0o777)).toEqual([0o644, 0o600])
    const [facts = '', snippet = ''] = stdout.split('\n\n')
    const { fingerprint256 } = new X509Certificate(readFileSync(crt))
    expect(facts).toBe(`certificate  ${crt}\nprivate key  ${key}\nfingerprint  SHA256:${fingerprint256}`)
    expect(parse(snippet)).toEqual({ server: { tls: { enabled: true, cert_file: crt, key_file: key } } })
    writeFileSync(join(directory, 'mem.yaml'), snippet)
    const check = await runCli(['check-config', '--config', join(directory, 'mem.yaml')], { env: { HOME: directory } })
    expect(check).toMatchObject({ code: 0, stdout: 'config ok\n' })
  })

  test('memory#142 --output is its directory behind the verb; a run replaces the files of the last', async () => {
    const output = join(directory, 'out')
    const first = await initCert('--host', 'localhost', '--output', output)
    expect(first.cert_file).toBe(join(output, 'server.crt'))
    const second = await initCert('--host', 'localhost', '--output', output)
    expect(second.cert_file).toBe(first.cert_file)
    expect(second.fingerprint).not.toBe(first.fingerprint)
    expect(statSync(second.key_file).mode & 0o777).toBe(0o600)
    const asYaml = await runCli(['init-cert', '--host', 'localhost', '--output', output, '-o', 'yaml'])
    expect(parse(asYaml.stdout)).toMatchObject({ cert_file: first.cert_file })
    const bad = await runCli(['init-cert', '--host', 'localhost', '-o', 'xml'])
    expect(bad).toMatchObject({ code: 1, stderr: expect.stringContaining('text, json, jsonl, yaml') })
  })

  test.each([
    ['ECDSA P-256', [], { asymmetricKeyType: 'ec', asymmetricKeyDetails: { namedCurve: 'prime256v1' } }],
    ['RSA 4096', ['--rsa'], { asymmetricKeyType: 'rsa', asymmetricKeyDetails: { modulusLength: 4096 } }],
  ])('memory#142 %s: key, names, validity, serial, use', async (_name, flags, key) => {
    const sans = ['--san', 'mem.internal', '--san', '10.1.2.3']
    const before = Date.now()
    const made = await initCert('--host', 'mem.example', ...sans, ...flags, '--output', join(directory, _name))
    const certificate = new X509Certificate(readFileSync(made.cert_file))
    const privateKey = createPrivateKey(readFileSync(made.key_file))
    expect(certificate.publicKey).toMatchObject(key)
    expect(certificate.checkPrivateKey(privateKey)).toBe(true)
    expect(readFileSync(made.key_file, 'utf8')).toMatch(/^-----BEGIN PRIVATE KEY-----/)
    expect(certificate.subject).toBe('CN=mem.example')
    expect(certificate.subjectAltName?.split(', ')).toEqual([
      'DNS:mem.example',
      'IP Address:127.0.0.1',
      'IP Address:0:0:0:0:0:0:0:1',
      'DNS:*.mem.example',
      'DNS:mem.internal',
      'IP Address:10.1.2.3',
    ])
    const [from, to] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)]
    expect(to - from).toBe(365 * 86_400_000)
    expect(Math.abs(before - 300_000 - from)).toBeLessThan(30_000)
    expect(certificate.serialNumber).toMatch(/^[0-9A-F]{24,32}$/)
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2'])
    expect(made.fingerprint).toBe(`SHA256:${certificate.fingerprint256}`)
  })

  test.skipIf(!hasOpenssl)('memory#142 openssl (3, if it is here) reads and trusts it', async () => {
    const { cert_file: crt, key_file: key, fingerprint } = await initCert('--host', 'mem.example')
    for (const purpose of ['sslserver', 'sslclient']) {
      const verdict = openssl('verify', '-x509_strict', '-purpose', purpose, '-CAfile', crt, crt)
      expect(verdict.trim()).toBe(`${crt}: OK`)
    }
    expect(openssl('x509', '-in', crt, '-noout', '-fingerprint', '-sha256').trim()).toBe(
      fingerprint.replace('SHA256:', 'sha256 Fingerprint='),
    )
    expect(openssl('x509', '-in', crt, '-noout', '-checkhost', 'a.mem.example')).toContain('does match')
    expect(openssl('pkey', '-in', key, '-pubout')).toBe(openssl('x509', '-in', crt, '-noout', '-pubkey'))
  })

  test.each([
    ['no host', [], 1],
    ['a URL', ['--host', 'https://mem.example'], 1],
    ['a bad --san', ['--host', 'x', '--san', 'a b'], 1],
    ['a directory that cannot be', ['--host', 'x', '--output', '/dev/null/tls'], 4],
  ])('refuses %s', async (_name, args, code) => {
    const result = await runCli(['init-cert', ...args], { env: { HOME: directory } })
    expect(result).toMatchObject({ code, stdout: '' })
  })
})
