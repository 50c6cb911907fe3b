import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished, describe, expect, test, vi } from 'vitest'
import { runRegistry } from '../../../src/cli/runbook/registry.ts'
import { createKubernetesClient, type KubernetesOptions } from '../../../src/runbook/kubernetes/index.ts'
import type { KubernetesApi } from '../../support/kubernetes/api.ts'
import { cluster, deployment } from './support.ts'

const target = { clusterId: '1', kind: 'Deployment', name: 'web' }
const get = (options: KubernetesOptions) => createKubernetesClient(options).get(target, AbortSignal.timeout(10_000))

async function prepared(): Promise<{
  api: KubernetesApi
  directory: string
  write(name: string, text: string): string
}> {
  const api = await cluster()
  api.put(deployment('web'))
  api.put(deployment('web', { metadata: { name: 'web', namespace: 'shop' }, spec: 'of shop' }))
  const directory = mkdtempSync(join(tmpdir(), 'kubeconfig-'))
  onTestFinished(() => {
    rmSync(directory, { recursive: true })
    vi.unstubAllEnvs()
  })
  const write = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text)
    return join(directory, name)
  }
  return { api, directory, write }
}

/** A kubeconfig with one context; fields of cluster and user as YAML flow maps. */
const kubeconfig = (server: string, trust: string, user: string, context = ''): string => `
apiVersion: v1
kind: Config
current-context: main
clusters:
  - name: c
    cluster: { server: "${server}", ${trust} }
users:
  - name: u
    user: { ${user} }
contexts:
  - name: main
    context: { cluster: c, user: u${context} }
`
const base64 = (text: string): string => Buffer.from(text).toString('base64')

describe('how a client finds its cluster', () => {
  test('server, token and ca; a wrong token, an unknown authority, nobody there', async () => {
    const { api } = await prepared()
    const { url: server, ca } = api
    await expect(get({ server, ca, token: 'token-1' })).resolves.toMatchObject({ kind: 'Deployment' })
    await expect(get({ server: `${server}/`, ca, token: 'token-1', namespace: 'shop' })).resolves.toMatchObject({
      spec: 'of shop',
    })
    await expect(get({ server, ca, token: 'wrong' })).rejects.toMatchObject({ status: 401 })
    await expect(get({ server, token: 'token-1' })).rejects.toMatchObject({ code: 'tls_failed' })
    await expect(get({ server: 'https://127.0.0.1:1', ca })).rejects.toMatchObject({ code: 'network_error' })
    await expect(get({ server: 'ftp://x' })).rejects.toMatchObject({ code: 'config_invalid' })
    await expect(get({ server: 'http://api.example.org', token: 'x' })).rejects.toThrow('without TLS')
  })

  test('a client certificate', async () => {
    const { api } = await prepared()
    const { url: server, ca, client } = api
    await expect(get({ server, ca, ...client })).resolves.toMatchObject({ kind: 'Deployment' })
    await expect(get({ server, ca })).rejects.toMatchObject({ status: 401 })
  })

  test('a kubeconfig: token, token file, certificates as data and as files, namespace, name in the certificate', async () => {
    const { api, write } = await prepared()
    const { url, ca, client } = api
    const data = `certificate-authority-data: ${base64(ca)}`
    const token = kubeconfig(url, data, 'token: token-1', ', namespace: shop')
    await expect(get({ kubeconfig: write('token', token) })).resolves.toMatchObject({ spec: 'of shop' })

    write('token.txt', 'token-1\n')
    write('ca.pem', ca)
    const files = kubeconfig(url, 'certificate-authority: ca.pem', 'tokenFile: token.txt')
    const byFile = createKubernetesClient({ kubeconfig: write('files', files) })
    await expect(byFile.get(target, AbortSignal.timeout(10_000))).resolves.toMatchObject({ kind: 'Deployment' })
    // a token file is read again, because it is replaced before its token ends
    api.tokens.clear()
    api.tokens.add('token-2')
    write('token.txt', 'token-2')
    await expect(byFile.get(target, AbortSignal.timeout(10_000))).resolves.toMatchObject({ kind: 'Deployment' })

    const pair = `client-certificate-data: ${base64(client.cert)}, client-key-data: ${base64(client.key)}`
    await expect(get({ kubeconfig: write('pair', kubeconfig(url, data, pair)) })).resolves.toBeDefined()
    write('client.crt', client.cert)
    write('client.key', client.key)
    const pairFiles = 'client-certificate: client.crt, client-key: client.key'
    await expect(get({ kubeconfig: write('pair-files', kubeconfig(url, data, pairFiles)) })).resolves.toBeDefined()
    const named = `${data}, tls-server-name: other.cluster.test`
    await expect(get({ kubeconfig: write('named', kubeconfig(url, named, pair)) })).rejects.toMatchObject({
      code: 'tls_failed',
    })
    const rightName = `${data}, tls-server-name: api.cluster.test`
    await expect(get({ kubeconfig: write('right', kubeconfig(url, rightName, pair)) })).resolves.toBeDefined()
  })

  test('$KUBECONFIG names several files, the first that has a name wins; else ~/.kube/config', async () => {
    const { api, directory, write } = await prepared()
    const data = `certificate-authority-data: ${base64(api.ca)}`
    const whole = kubeconfig(api.url, data, 'token: token-1')
    const first = write(
      'first',
      'current-context: other\ncontexts: [{ name: other, context: { cluster: c, user: u, namespace: shop } }]',
    )
    vi.stubEnv('KUBECONFIG', `${first}:${join(directory, 'gone')}:${write('second', whole)}`)
    await expect(get({ kubeconfig: true })).resolves.toMatchObject({ spec: 'of shop' })
    await expect(get({ kubeconfig: true, context: 'main' })).resolves.toMatchObject({ kind: 'Deployment' })
    vi.stubEnv('KUBECONFIG', '')
    vi.stubEnv('HOME', directory)
    await expect(get({ kubeconfig: true })).rejects.toThrow(`no kubeconfig at ${join(directory, '.kube/config')}`)
    mkdirSync(join(directory, '.kube'))
    write('.kube/config', whole)
    await expect(get({ kubeconfig: true })).resolves.toMatchObject({ kind: 'Deployment' })
  })

  test.each([
    ['exec: { command: aws }', '', '"exec"'],
    ['auth-provider: { name: gcp }', '', '"auth-provider"'],
    ['username: a, password: b', '', 'no passwords'],
    ['token: x, as: root', '', 'impersonation'],
    ['token: x', 'insecure-skip-tls-verify: true', 'skips the check'],
    ['token: x', 'proxy-url: http://127.0.0.1:1', 'proxy-url'],
    ['tokenFile: /no/such/file', '', 'cannot read the token'],
    ['token: x', 'certificate-authority: /no/such/file', 'cannot read the credentials'],
  ])('a kubeconfig with what is not done: %s %s', async (user, trust, message) => {
    const { api, write } = await prepared()
    const failure = get({ kubeconfig: write('config', kubeconfig(api.url, trust, user)) })
    await expect(failure).rejects.toMatchObject({ code: 'config_invalid', message: expect.stringContaining(message) })
    expect(api.calls).toEqual([])
  })

  test('a kubeconfig that is none, or lacks what its context names', async () => {
    const { write } = await prepared()
    const failure = async (text: string, context?: string): Promise<unknown> =>
      get({ kubeconfig: write('config', text), ...(context !== undefined && { context }) }).catch(
        (error: unknown) => error,
      )
    expect(await failure('a: [')).toMatchObject({ code: 'config_invalid' })
    expect(await failure('clusters: 1')).toMatchObject({ message: expect.stringContaining('no kubeconfig') })
    expect(await failure('')).toMatchObject({ message: expect.stringContaining('no current context') })
    const whole = kubeconfig('https://127.0.0.1:1', '', 'token: x')
    expect(await failure(whole, 'gone')).toMatchObject({ message: expect.stringContaining('nothing named "gone"') })
    expect(await failure(whole.replace('user: u', 'user: v'))).toMatchObject({
      message: expect.stringContaining('"v"'),
    })
  })

  test('in a cluster: address of the pod, token that rotates, certificate, namespace', async () => {
    const { api, directory, write } = await prepared()
    const { hostname, port } = new URL(api.url)
    vi.stubEnv('KUBERNETES_SERVICE_HOST', '')
    await expect(get({ inCluster: directory })).rejects.toThrow('KUBERNETES_SERVICE_HOST is not set')
    vi.stubEnv('KUBERNETES_SERVICE_HOST', hostname)
    vi.stubEnv('KUBERNETES_SERVICE_PORT', port)
    write('ca.crt', api.ca)
    write('namespace', 'shop')
    write('token', 'token-1')
    const client = createKubernetesClient({ inCluster: directory })
    await expect(client.get(target, AbortSignal.timeout(10_000))).resolves.toMatchObject({ spec: 'of shop' })
    api.tokens.clear()
    await expect(client.get(target, AbortSignal.timeout(10_000))).rejects.toMatchObject({ status: 401 })
    write('token', 'token-2')
    api.tokens.add('token-2')
    await expect(client.get(target, AbortSignal.timeout(10_000))).resolves.toMatchObject({ spec: 'of shop' })
  })
})

test('runbook#101 inside a cluster the command line has code, outside it and for orch_get it has not', async () => {
  const { directory, write } = await prepared()
  write('token', 'token-1')
  const inPod = { KUBERNETES_SERVICE_HOST: '10.0.0.1' }
  const types = async (env: Record<string, string>, place: string) => {
    const registry = await runRegistry({ env }, {}, place)
    return ['code', 'orch_get'].map((type) => registry.has(type))
  }
  expect(await types(inPod, directory)).toEqual([true, false])
  expect(await types({}, directory)).toEqual([false, false])
  expect(await types(inPod, join(directory, 'gone'))).toEqual([false, false])
})
