import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import type { TLSSocket } from 'node:tls'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { createApp, type App } from '../../src/app.ts'
import { writePair } from '../../src/config/certificates.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createPair } from '../../src/config/self-sign.ts'
import { freePort } from '../support/ports.ts'
import { spawnProgram } from '../support/program.ts'

let directory: string
let apps: App[]
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'mem-test-tls-'))
  apps = []
})
afterEach(async () => {
  for (const app of apps) await app.close()
  rmSync(directory, { recursive: true })
})

/** A server with this `server.tls`, until the test ends. */
async function start(tls: object): Promise<{ app: App; url: string }> {
  writeFileSync(join(directory, 'mem.yaml'), JSON.stringify({ server: { tls: { enabled: true, ...tls } } }))
  const env = { HOME: directory, MEM_ADDR: '127.0.0.1:0', MEM_DATA_DIR: join(directory, 'data') }
  const config = loadConfig({ env, cwd: directory })
  const app = await createApp({ ...config, telemetry: { ...config.telemetry, log_level: 'error' } })
  apps.push(app)
  return { app, url: await app.listen() }
}

/** GET /healthz of who trusts nothing but `ca`: the status, the certificate met, the connection. */
async function get(url: string, ca: string, agent = new Agent({ maxCachedSessions: 0 })) {
  const sent = request(`${url}/healthz`, { ca, agent }).end()
  const [response] = await once(sent, 'response')
  const socket: TLSSocket = response.socket
  const [cert, port] = [new X509Certificate(socket.getPeerCertificate().raw), socket.localPort]
  await text(response)
  return { status: response.statusCode, cert, port }
}

const certFile = (): string => join(directory, 'data/tls/server.crt')

test('memory#129 a pair is served to who trusts it, and to nobody else', async () => {
  const pair = await createPair({ host: 'localhost', now: Date.now() })
  const { certFile: cert_file, keyFile: key_file } = writePair(directory, pair)
  const { url } = await start({ cert_file, key_file })
  expect(url).toMatch(/^https:/)
  expect((await get(url, pair.cert)).status).toBe(200)
  await expect(get(url, (await createPair({ host: 'localhost', now: Date.now() })).cert)).rejects.toThrow(/self-signed/)
})

test('memory#129 a self-signed certificate is made once and kept over a restart', async () => {
  const first = await start({ auto_self_signed: true })
  const cert = readFileSync(certFile(), 'utf8')
  expect((await get(first.url, cert)).status).toBe(200)
  const second = await start({ auto_self_signed: true })
  expect(readFileSync(certFile(), 'utf8')).toBe(cert)
  expect((await get(second.url, cert)).status).toBe(200)
})

test('a new certificate is served without dropping a connection; one that is no good is not', async () => {
  const old = await createPair({ host: 'localhost', now: Date.now() })
  const { certFile: cert_file, keyFile: key_file } = writePair(directory, old)
  const { app, url } = await start({ cert_file, key_file })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  onTestFinished(() => agent.destroy())
  const { port } = await get(url, old.cert, agent)

  const renewed = await createPair({ host: 'localhost', now: Date.now() })
  writePair(directory, renewed)
  await app.reloadCertificate()
  expect((await get(url, renewed.cert)).cert.fingerprint256).toBe(new X509Certificate(renewed.cert).fingerprint256)
  expect((await get(url, old.cert, agent)).port).toBe(port)

  writeFileSync(key_file, old.key)
  await app.reloadCertificate()
  expect((await get(url, renewed.cert)).status).toBe(200)
})

test('SIGHUP makes the program read its certificate again', async () => {
  writeFileSync(join(directory, 'mem.yaml'), 'server: {tls: {enabled: true, auto_self_signed: true}}')
  const port = await freePort()
  const server = spawnProgram(['serve', '--addr', `127.0.0.1:${port}`], { directory })
  onTestFinished(() => void server.kill('SIGKILL'))
  const log = createInterface(server.stderr)[Symbol.asyncIterator]()
  const [welcome] = await once(server.stdout, 'data')
  expect(String(welcome)).toContain(`mem is serving https://127.0.0.1:${port}`)

  const renewed = await createPair({ host: 'localhost', now: Date.now() })
  writePair(join(directory, 'data/tls'), renewed)
  server.kill('SIGHUP')
  for (let line = ''; !line.includes('the certificate was read again');) line = (await log.next()).value
  expect((await get(`https://127.0.0.1:${port}`, renewed.cert)).status).toBe(200)
})
