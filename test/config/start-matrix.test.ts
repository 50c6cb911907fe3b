import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { parseAddress } from '../../src/config/address.ts'
import { checkStart } from '../../src/config/start-matrix.ts'
import { PAIRS } from './pairs.ts'
import { configError, makeWorkspace, type Workspace } from './workspace.ts'

const LOOPBACK = [
  '127.0.0.1:7777',
  '127.8.9.10:1',
  '[::1]:7777',
  '[0:0:0:0:0:0:0:1]:7777',
  'localhost:7777',
  'LocalHost:0',
]
const OPEN = [
  ':7777',
  '0.0.0.0:7777',
  '[::]:7777',
  '10.0.0.5:7777',
  'mem.example:7777',
  '127.0.0.1.example:7777',
  '127.1:7777',
]

describe('memory#126 start matrix', () => {
  it.each(LOOPBACK)('no key on %s starts with a warning', (addr) => {
    expect(checkStart(makeWorkspace().load({ MEM_ADDR: addr }))).toEqual([
      `no API key: every program on this machine may read and write (${addr})`,
    ])
  })

  it.each(OPEN)('no key on %s is refused', (addr) => {
    const error = configError(() => checkStart(makeWorkspace().load({ MEM_ADDR: addr })))
    expect(error.key).toBe('server.api_key')
    expect(error.message).toContain(`server.api_key is required to listen on ${addr}`)
  })

  it.each([...LOOPBACK, ...OPEN])('allow_no_auth on %s starts with a warning', (addr) => {
    const flagged = makeWorkspace().load({ MEM_ADDR: addr }, { 'allow-no-auth': true })
    const written = makeWorkspace({ 'mem.yaml': 'server: {allow_no_auth: true}' }).load({ MEM_ADDR: addr })
    const warning = `no API key: everyone who reaches ${addr} may read and write (server.allow_no_auth)`
    expect([checkStart(flagged), checkStart(written)]).toEqual([[warning], [warning]])
  })

  it.each([...LOOPBACK, ...OPEN])('with a key %s starts', (addr) => {
    expect(checkStart(makeWorkspace().load({ MEM_ADDR: addr, MEM_API_KEY: 'k' }))).toEqual([])
  })
})

it.each([
  ['', undefined],
  ['7777', undefined],
  ['::1:7777', undefined],
  ['[nope]:1', undefined],
  ['host:65536', undefined],
  ['http://host:1', undefined],
  [':7777', { host: '', port: 7777 }],
  ['[::1]:0', { host: '::1', port: 0 }],
])('parseAddress %s', (text, address) => {
  expect(parseAddress(text)).toEqual(address)
})

describe('memory#129 TLS settings', () => {
  const makePair = ({ write }: Workspace, name: 'a' | 'b'): void => {
    write(`${name}.crt`, PAIRS[name].cert)
    write(`${name}.key`, PAIRS[name].key, 0o600)
  }
  const start = (workspace: Workspace, tls: string, addr = 'localhost:1'): string[] => {
    workspace.write('mem.yaml', `server: {api_key: k, addr: "${addr}", tls: {enabled: true, ${tls}}}`)
    return checkStart(workspace.load())
  }
  const pair = ({ directory }: Workspace, cert = 'a', key = 'a'): string =>
    `cert_file: ${directory}/${cert}.crt, key_file: ${directory}/${key}.key`

  it('needs a pair or auto_self_signed', () => {
    const workspace = makeWorkspace()
    expect(configError(() => start(workspace, '')).key).toBe('server.tls.cert_file')
    expect(configError(() => start(workspace, 'cert_file: x, auto_self_signed: true')).key).toBe('server.tls.key_file')
    expect(start(workspace, 'auto_self_signed: true')).toEqual([])
    expect(start(workspace, 'auto_self_signed: true', ':1')).toHaveLength(1)
  })

  it('refuses files that are absent, no certificate, or of two pairs', () => {
    const workspace = makeWorkspace()
    expect(configError(() => start(workspace, pair(workspace))).message).toMatch(/a.crt cannot be read: ENOENT/)
    makePair(workspace, 'a')
    makePair(workspace, 'b')
    expect(configError(() => start(workspace, pair(workspace, 'a', 'b'))).message).toContain('are no usable pair')
    workspace.write('c.crt', 'nonsense')
    expect(configError(() => start(workspace, pair(workspace, 'c', 'a'))).key).toBe('server.tls.cert_file')
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    workspace.write('d.key', privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), 0o600)
    expect(configError(() => start(workspace, pair(workspace, 'a', 'd'))).message).toContain('not that of the cert')
  })

  it('warns of a key open to others, and of a self-signed certificate that others meet', () => {
    const workspace = makeWorkspace()
    makePair(workspace, 'a')
    expect(start(workspace, pair(workspace))).toEqual([])
    expect(start(workspace, pair(workspace), ':1')).toEqual([expect.stringContaining('self-signed')])
    workspace.write('a.key', PAIRS.a.key, 0o644)
    expect(start(workspace, pair(workspace))).toEqual([
      expect.stringContaining('is open to others (mode 0644): chmod 600'),
    ])
  })
})
