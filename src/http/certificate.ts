import https from 'node:https'
import type { FastifyInstance } from 'fastify'

/** Serves another certificate (PEM) from the next connection on; open ones go on. Nothing where there is no TLS. */
export function replaceCertificate({ server }: FastifyInstance, pair: { cert: string; key: string }): void {
  if (server instanceof https.Server) server.setSecureContext(pair)
}
