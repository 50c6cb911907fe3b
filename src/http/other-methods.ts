import type { FastifyInstance, FastifyRequest } from 'fastify'

/** Every path hands the methods that it does not have to `refuse`, with what `Allow` should say. */
export function mountOtherMethods(
  app: FastifyInstance,
  routes: readonly { method: string; path: string }[],
  refuse: (request: FastifyRequest, allow: string) => Error,
): void {
  const byPath = new Map<string, Set<string>>()
  for (const { method, path } of routes) {
    const methods = byPath.get(path) ?? new Set()
    byPath.set(path, methods.add(method))
    if (method === 'GET') methods.add('HEAD')
  }
  for (const [url, allowed] of byPath) {
    const others = app.supportedMethods.filter((method) => !allowed.has(method))
    const allow = [...allowed].join(', ')
    app.route({
      method: others,
      url,
      handler: (request, reply) => {
        const refusal = refuse(request, allow)
        reply.header('Allow', allow)
        throw refusal
      },
    })
  }
}
