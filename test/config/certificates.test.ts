import { createPrivateKey, X509Certificate } from 'node:crypto'
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { isCertifiable, keepPair, writePair } from '../../src/config/certificates.ts'
import { createPair } from '../../src/config/self-sign.ts'
import { makeWorkspace } from './workspace.ts'

const DAY = 86_400_000
const NOW = Date.parse('2026-01-02T03:04:05Z')

it('lets only names and addresses into a certificate', () => {
  const fit = ['localhost', 'a-b.example.org', '*.example.org', 'under_score', '10.0.0.1', '::1', 'fe80::1']
  const unfit = ['', 'a b', 'é.org', 'https://x', 'x:1', '[::1]', 'fe80::1%eth0', 'a..b', '*', 'x.*.y', 'a'.repeat(254)]
  expect(fit.filter((name) => !isCertifiable(name))).toEqual([])
  expect(unfit.filter(isCertifiable)).toEqual([])
})

it('gives an address no wildcard, and names nothing twice', async () => {
  const { cert } = await createPair({ host: '127.0.0.1', sans: ['mem', 'mem'], now: NOW })
  expect(new X509Certificate(cert).subjectAltName).toBe('IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, DNS:mem')
})

it('writes over what is there with the modes that are due, whatever the umask', async () => {
  const { directory } = makeWorkspace()
  const tls = join(directory, 'a/tls')
  const umask = process.umask(0o077)
  try {
    const pair = await createPair({ host: 'localhost', now: NOW })
    writePair(tls, pair)
    writePair(tls, pair)
  } finally {
    process.umask(umask)
  }
  const modes = ['', 'server.crt', 'server.key'].map((name) => statSync(join(tls, name)).mode & 0o777)
  expect(modes).toEqual([0o700, 0o644, 0o600])
})

it('keeps a pair until 30 days before its end, and makes a broken one anew', async () => {
  const { directory } = makeWorkspace()
  const keep = (now: number) => keepPair(directory, { host: 'localhost', now })
  const first = await keep(NOW)
  expect(await keep(NOW + 334 * DAY)).toEqual(first)
  const second = await keep(NOW + 335 * DAY)
  expect(second).not.toEqual(first)
  expect(await keep(NOW + 336 * DAY)).toEqual(second)
  writeFileSync(join(directory, 'server.key'), first.key)
  const third = await keep(NOW)
  expect(new X509Certificate(third.cert).checkPrivateKey(createPrivateKey(third.key))).toBe(true)
  expect(readFileSync(join(directory, 'server.crt'), 'utf8')).toBe(third.cert)
  writeFileSync(join(directory, 'server.crt'), 'nonsense')
  expect((await keep(NOW)).cert).toContain('BEGIN CERTIFICATE')
})

it('fails where it cannot write', async () => {
  const { directory } = makeWorkspace()
  mkdirSync(join(directory, 'server.key.new'))
  await expect(keepPair(directory, { host: 'localhost', now: NOW })).rejects.toThrow('EISDIR')
})
