import { expect, test } from 'vitest'
import { kernelRoutes, type KernelRoute } from '../../src/kernel/capabilities.ts'
import { COMPONENTS } from '../../src/kernel/capability-table.ts'
import { describeKernels, openKernel, type OpenKernel } from './api.ts'

/** Of routes, what it says to a request that names nothing. */
function askAll(
  { call }: OpenKernel,
  routes: readonly KernelRoute[],
): Promise<{ route: KernelRoute; status: number; error: string }[]> {
  return Promise.all(
    routes.map(async (route) => {
      const { status, body } = await call(route.method, route.path.replace(/\{\w+\}/g, 'x'))
      return { route, status, error: body.error }
    }),
  )
}

const offered = async ({ call }: OpenKernel): Promise<Set<string>> => {
  const { body } = await call('GET', '/capabilities')
  const listed: { id: string; operations: string[] }[] = body.capabilities
  return new Set(listed.flatMap(({ id, operations }) => operations.map((operation) => `${id} ${operation}`)))
}

const nameOf = ({ capability, operation }: KernelRoute): string => `${capability} ${operation.name}`

describeKernels('what a kernel offers', (open) => {
  test('kernel#15 what is advertised never answers 501, what is not always does, and the texts are distinct', async () => {
    const kernel = await openKernel(open(), { components: COMPONENTS })
    const advertised = await offered(kernel)
    const replies = await askAll(kernel, kernelRoutes())
    for (const { route, status, error } of replies) {
      expect([nameOf(route), status === 501 || status === 403, error]).toEqual([
        nameOf(route),
        !advertised.has(nameOf(route)),
        expect.any(String),
      ])
    }
    const texts = new Map(
      replies.filter(({ status }) => status === 501).map(({ route, error }) => [nameOf(route), error]),
    )
    expect(new Set(texts.values()).size).toBe(texts.size)
    await kernel.stop()
  })

  test('kernel#14 without one component its routes answer 501 and name it, its operations vanish, all others stay', async () => {
    const all = await openKernel(open(), { components: COMPONENTS })
    const advertised = await offered(all)
    await all.stop()
    const needed = new Set(
      kernelRoutes()
        .filter((route) => advertised.has(nameOf(route)))
        .flatMap(({ operation }) => operation.needs),
    )
    expect(needed.size).toBeGreaterThan(0)
    for (const missing of needed) {
      const kernel = await openKernel(open(), { components: COMPONENTS.filter((one) => one !== missing) })
      const without = kernelRoutes().filter(({ operation }) => operation.needs.includes(missing))
      for (const { route, status, error } of await askAll(kernel, without)) {
        const text = `${missing} is not configured: ${nameOf(route)} is unavailable`
        expect([nameOf(route), status, error]).toEqual([nameOf(route), 501, text])
      }
      const gone = new Set(without.map(nameOf))
      expect(await offered(kernel)).toEqual(new Set([...advertised].filter((name) => !gone.has(name))))
      const left = kernelRoutes().filter((route) => advertised.has(nameOf(route)) && !gone.has(nameOf(route)))
      for (const { method, path } of left) expect(() => kernel.kernel.handlerOf(`${method} ${path}`)).not.toThrow()
      await kernel.stop()
    }
  })

  test('the document tells of its version; half a scope is refused', async () => {
    const { status, body } = await open().call('GET', '/capabilities')
    expect([status, body.apiVersion]).toEqual([200, 'agent-kernel/v1'])
    expect(body.capabilities).toContainEqual({
      id: 'objectives',
      version: '1',
      available: true,
      operations: ['create', 'list', 'get', 'update'],
    })
    expect((await open().call('GET', '/capabilities?scopeKind=a&scopeId=b')).status).toBe(200)
    expect((await open().call('GET', '/capabilities?scopeKind=a')).status).toBe(400)
  })

  test('a missing capability is told of before the body is looked at', async () => {
    const raw = Buffer.alloc(8 * 1024 * 1024 + 1, 0x20)
    expect((await open().call('POST', '/source-policies/versions', undefined, { raw })).status).toBe(501)
    expect((await open().call('POST', '/source-policies/versions', undefined, { raw: 'no JSON' })).status).toBe(501)
  })
})
