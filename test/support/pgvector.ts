import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'

/** A PostgreSQL with the extension pgvector, on a port of its own. */
export interface PgvectorServer {
  url: string
  /** The session that all connections share. */
  db: PGlite
  /** An empty database again, without the extension. */
  clear(): Promise<void>
  stop(): Promise<void>
}

const SSL_REQUEST = 80_877_103
const IDLE = 'I'.charCodeAt(0)

/**
 * Starts PGlite, which is one session, and serves any number of connections with it: their transactions take turns, and
 * each has prepared statements of its own.
 */
export async function startPgvector(): Promise<PgvectorServer> {
  const db = await PGlite.create({ extensions: { vector } })
  await db.exec('CREATE EXTENSION vector')
  const turns = new Turns()
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => undefined)
    // A connection that breaks off ends its reading with an error.
    void serve(socket, db, turns).catch(() => undefined)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  return {
    url: `postgresql://postgres:pass-word@127.0.0.1:${address.port}/postgres`,
    db,
    clear: async () => {
      const release = await turns.take()
      await db.exec('DROP SCHEMA public CASCADE; CREATE SCHEMA public; DEALLOCATE ALL').finally(release)
    },
    stop: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
      await db.close()
    },
  }
}

/** Who has the session, and who comes next. */
class Turns {
  #last: Promise<void> = Promise.resolve()

  /** Resolves when it is the caller's turn, which lasts until the function given is called. */
  async take(): Promise<() => void> {
    const before = this.#last
    let release = (): void => {}
    this.#last = new Promise((resolve) => (release = resolve))
    await before
    return release
  }
}

let connections = 0

/** A turn begins with the first message of a query, and ends when the session is outside of a transaction. */
async function serve(socket: Socket, db: PGlite, turns: Turns): Promise<void> {
  const prefix = `c${++connections}_`
  let release: (() => void) | undefined
  try {
    for await (const message of messagesOf(socket)) {
      if (message[0] === 'X'.charCodeAt(0)) break
      release ??= await turns.take()
      const answer = await db.execProtocolRaw(withPrefix(message, prefix))
      if (socket.writable) socket.write(answer)
      if (answer.at(-1) !== IDLE || answer.at(-6) !== 'Z'.charCodeAt(0)) continue
      release()
      release = undefined
    }
  } finally {
    if (release && !db.closed) await db.exec('ROLLBACK').catch(() => undefined)
    release?.()
    socket.destroy()
  }
}

/** Frames of the protocol: the first has no type, and a wish for TLS is declined. */
async function* messagesOf(socket: Socket): AsyncGenerator<Buffer> {
  let rest = Buffer.alloc(0)
  let isStarted = false
  const chunks: AsyncIterable<Buffer> = socket
  for await (const chunk of chunks) {
    rest = Buffer.concat([rest, chunk])
    for (;;) {
      const start = isStarted ? 1 : 0
      if (rest.length < start + 4) break
      const end = start + rest.readInt32BE(start)
      if (rest.length < end) break
      const message = rest.subarray(0, end)
      rest = rest.subarray(end)
      if (!isStarted && message.readInt32BE(4) === SSL_REQUEST) {
        socket.write('N')
        continue
      }
      isStarted = true
      yield message
    }
  }
}

/** Where a message names a prepared statement: behind so many bytes, and behind so many texts. */
const NAMES: Record<string, { bytes: number; texts: number }> = {
  P: { bytes: 5, texts: 0 },
  B: { bytes: 5, texts: 1 },
  D: { bytes: 6, texts: 0 },
  C: { bytes: 6, texts: 0 },
}

function withPrefix(message: Buffer, prefix: string): Buffer {
  const place = NAMES[String.fromCharCode(message[0] ?? 0)]
  if (!place) return message
  let at = place.bytes
  for (let i = 0; i < place.texts; i++) at = message.indexOf(0, at) + 1
  const isPortal = place.bytes === 6 && message[5] === 'P'.charCodeAt(0)
  if (message[at] === 0 || isPortal) return message
  const named = Buffer.concat([message.subarray(0, at), Buffer.from(prefix), message.subarray(at)])
  named.writeInt32BE(named.length - 1, 1)
  return named
}
