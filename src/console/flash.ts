import type { FastifyReply, FastifyRequest } from 'fastify'

const COOKIE = 'mem_flash'

/** Leaves a note for the next page. */
export function setFlash(reply: FastifyReply, text: string): void {
  const value = Buffer.from(text).toString('base64url')
  reply.setCookie(COOKIE, value, { path: '/ui', httpOnly: true, sameSite: 'lax', maxAge: 30 })
}

/** The note of the last action, shown once. */
export function takeFlash(request: FastifyRequest, reply: FastifyReply): string | undefined {
  const value = request.cookies[COOKIE]
  if (value === undefined) return undefined
  reply.clearCookie(COOKIE, { path: '/ui' })
  return Buffer.from(value, 'base64url').toString()
}
