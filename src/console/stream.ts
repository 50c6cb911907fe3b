import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'

export interface Streams {
  /** Sends chunks as they come; when the client leaves, or the server ends, the source is told by its signal. */
  send(
    reply: FastifyReply,
    headers: Readonly<Record<string, string>>,
    source: (signal: AbortSignal) => AsyncIterable<string>,
  ): FastifyReply
  /** Ends every stream: the server is going away. */
  close(): void
}

/** The streams of one server. */
export function createStreams(): Streams {
  const running = new Set<AbortController>()
  return {
    send(reply, headers, source) {
      const ending = new AbortController()
      running.add(ending)
      const readable = Readable.from(source(ending.signal), { objectMode: false, highWaterMark: 16 * 1024 })
      readable.once('close', () => {
        running.delete(ending)
        ending.abort()
      })
      reply.raw.once('close', () => ending.abort())
      return reply.headers({ 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no', ...headers }).send(readable)
    },
    close() {
      for (const ending of running) ending.abort()
    },
  }
}

export const EVENT_STREAM = { 'Content-Type': 'text/event-stream; charset=utf-8' }

/** One event; its text may have several lines. */
export const event = (data: string): string => `${data.replace(/^/gm, 'data: ')}\n\n`
