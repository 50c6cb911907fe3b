import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { answerOn } from './unreadable.ts'

/**
 * The upgrades to WebSockets of a server, and no others. Once somebody listens for upgrades, Node takes each offer of another
 * protocol for one and keeps the body from who serves the request; Java and `curl --http2` offer h2c with every request. What
 * is no WebSocket is served as if nothing had been offered.
 */
export function webSocketUpgrades(server: Server): Server {
  const upgrades = createServer()
  server.on('upgrade', (request, socket, head) => {
    behindAnswers(socket, () => {
      if (request.headers.upgrade?.toLowerCase() === 'websocket') upgrades.emit('upgrade', request, socket, head)
      else readAgain(server, request, socket, head)
    })
  })
  return upgrades
}

/** A client may send its next request before it has the answer to the last: Node tells of an upgrade at once all the same. */
function behindAnswers(socket: Duplex, goOn: () => void): void {
  const ignore = (): void => undefined // nobody else listens meanwhile, and a connection that breaks closes its answer
  const next = (): void => {
    const answer = answerOn(socket)
    if (answer) answer.once('close', next)
    else if (socket.writable) {
      socket.off('error', ignore)
      goOn()
    }
  }
  socket.on('error', ignore)
  next()
}

function readAgain(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = request
  const lines = [`${method} ${url} HTTP/${httpVersion}`]
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]
    if (name?.toLowerCase() !== 'upgrade') lines.push(`${name}: ${rawHeaders[at + 1]}`)
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]))
  server.emit('setSecureContext' in server ? 'secureConnection' : 'connection', socket)
}
