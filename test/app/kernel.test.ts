import { request } from 'node:http'
import { afterEach, expect, test } from 'vitest'
import { checkStart } from '../../src/config/start-matrix.ts'
import { configError, makeWorkspace } from '../config/workspace.ts'
import { startMemoryApi, type ApiOptions, type MemoryApi } from '../support/memory-api.ts'
import { freePort } from '../support/ports.ts'

const started: MemoryApi[] = []
afterEach(async () => void (await Promise.all(started.splice(0).map((api) => api.stop()))))

async function start(options: Omit<ApiOptions, 'dialect'>): Promise<MemoryApi> {
  const api = await startMemoryApi({ dialect: 'sqlite', ...options })
  started.push(api)
  return api
}

const statusOf = async (url: string, token?: string): Promise<number> =>
  (await fetch(url, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } })).status

/** `fetch` sends no other Host. */
const statusFor = (url: string, host: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    request(url, { headers: { host } }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
      .on('error', reject)
      .end()
  })

test('with a token of its own the kernel opens to that alone, and the console has no pages of it', async () => {
  const { url } = await start({ env: { MEM_API_KEY: 'server-key', KERNEL_API_TOKEN: 'kernel-token' } })
  expect(await statusOf(`${url}/api/v1/health`, 'kernel-token')).toBe(200)
  expect(await statusOf(`${url}/api/v1/health`, 'server-key')).toBe(401)
  expect(await statusOf(`${url}/v1/workspaces`, 'kernel-token')).toBe(401)
  const { url: open } = await start({ env: { KERNEL_API_TOKEN: 'kernel-token' } })
  expect(await statusOf(`${open}/ui/`)).toBe(200)
  expect(await statusOf(`${open}/ui/kernel/runs`)).toBe(404)
  expect(await (await fetch(`${open}/ui/`)).text()).not.toContain('/ui/kernel/')
})

test('an address of its own: the kernel is there and nowhere else, behind the same rules', async () => {
  const own = `127.0.0.1:${await freePort()}`
  const { url } = await start({ file: `kernel: {api: {listenAddr: "${own}"}}` })
  expect(await statusOf(`http://${own}/api/v1/health`)).toBe(200)
  expect(await statusOf(`http://${own}/v1/workspaces`)).toBe(404)
  expect(await statusOf(`${url}/api/v1/health`)).toBe(404)
  expect(await statusFor(`http://${own}/api/v1/health`, 'mem.example')).toBe(403)
})

test('an address that others reach needs a key or a token; a person at this machine approves on loopback alone', async () => {
  const { load } = makeWorkspace({ 'mem.yaml': 'kernel: {api: {listenAddr: ":7801"}}' })
  const both = { memory: true, kernel: true }
  expect(configError(() => checkStart(load(), both))).toMatchObject({
    key: 'server.api_key',
    message: expect.stringContaining(':7801'),
  })
  expect(checkStart(load({ KERNEL_API_TOKEN: 'token' }), both)).toHaveLength(1) // of memory, on loopback
  expect(checkStart(load({ MEM_API_KEY: 'key' }), both)).toEqual([])
  expect(() => checkStart(load(), { memory: true, kernel: false })).not.toThrow()
  for (const file of ['kernel: {api: {listenAddr: ":7801"}}', 'server: {addr: ":7801"}']) {
    const flags = { 'standalone-operator': true }
    await expect(start({ file, flags, env: { MEM_API_KEY: 'key', MEM_ADDR: '' } })).rejects.toThrow(
      /loopback address, not :7801/,
    )
  }
})
