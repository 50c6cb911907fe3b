import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** Below this, what is saved is less than a packet. */
const MIN_BYTES = 2048
/** The audit page of 70 kB comes to 5.5 kB; level 11 takes a hundred times as long for 4.8 kB. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }
const TEXT = /^(?:text\/(?:html|plain|csv)|application\/json)\b/

const ENCODERS = {
  br: (bytes: Buffer) => promisify(brotliCompress)(bytes, BROTLI),
  gzip: (bytes: Buffer) => promisify(gzip)(bytes),
}

/**
 * Compresses what GET answers with in text, off the event loop; streams go as they are.
 *
 * Length tells something of a secret that is compressed together with what an attacker wrote (BREACH). Tokens in pages are
 * masked anew in each answer (console/csrf.ts); and a page whose query another site may have written, by what the browser
 * says of the request, is sent as it is, so that the Memories in it stay secret too.
 */
export function compressAnswers(app: FastifyInstance): void {
  app.addHook('onSend', async (request, reply, payload) => {
    const type = reply.getHeader('content-type')
    const isReading = request.method === 'GET' || request.method === 'HEAD'
    if (!isReading || typeof type !== 'string' || !TEXT.test(type) || reply.hasHeader('content-encoding'))
      return payload
    if (typeof payload !== 'string' && !Buffer.isBuffer(payload)) return payload
    const bytes = Buffer.from(payload)
    if (bytes.length < MIN_BYTES) return payload
    addVary(reply)
    const encoding = acceptedEncoding(request)
    if (!encoding || (type.startsWith('text/html') && mayBeLured(request))) return payload
    reply.header('Content-Encoding', encoding).removeHeader('content-length')
    return ENCODERS[encoding](bytes)
  })
}

/** CORS may have named `Origin` already. */
function addVary(reply: FastifyReply): void {
  const known = reply.getHeader('vary')
  reply.header('Vary', typeof known === 'string' ? `${known}, Accept-Encoding` : 'Accept-Encoding')
}

/** Weights other than 0 make no difference: what a client takes at all, it takes in our order. */
function acceptedEncoding({ headers }: FastifyRequest): keyof typeof ENCODERS | undefined {
  const sent = headers['accept-encoding']
  const accepted = (typeof sent === 'string' ? sent : '')
    .split(',')
    .filter((entry) => !/;\s*q=0(?:\.0*)?\s*$/.test(entry))
    .map((entry) => entry.split(';', 1)[0]?.trim().toLowerCase())
  return (['br', 'gzip'] as const).find((name) => accepted.includes(name))
}

/** Browsers say who made them ask wherever they speak TLS or to this machine; elsewhere there is nothing to measure. */
function mayBeLured({ url, headers }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site']
  return url.includes('?') && site !== 'same-origin' && site !== 'none'
}
