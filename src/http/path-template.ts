import type { FastifyRequest } from 'fastify'

/** `/workspaces/:ws/memories/:id(^[^:@]+)::append` is `/workspaces/{ws}/memories/{id}:append`. */
export const pathTemplate = (pattern: string): string =>
  pattern.replace(/::|:(\w+)(?:\([^)]*\))?/g, (found, name: string | undefined) => (found === '::' ? ':' : `{${name}}`))

/** Of the path of a request; undefined where it has no routes. */
export function templateOf({ found, routeOptions }: FastifyRequest): string | undefined {
  const pattern = found?.pattern ?? routeOptions.url
  return pattern === undefined ? undefined : pathTemplate(pattern)
}
