import type { FastifyRequest } from 'fastify'

/** A header as it was sent; undefined where it was not, and for one of those that are lists. */
export function header({ headers }: FastifyRequest, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' ? value : undefined
}
