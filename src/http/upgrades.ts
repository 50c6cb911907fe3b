import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { Duplex } from 'node:stream'

/**
 * The upgrades to WebSockets of a server, and no others. Once somebody listens for upgrades, Node takes each offer of another
 * protocol for one and keeps the body from who serves the request; Java and `curl --http2` offer h2c with every request. What
 * is no WebSocket is served as if nothing had been offered.
 */
export function webSocketUpgrades(server: Server): Server {
  const upgrades = createServer()
  server.on('upgrade', (request, socket, head) => {
    if (request.headers.upgrade?.toLowerCase() === 'websocket') upgrades.emit('upgrade', request, socket, head)
    else readAgain(server, request, socket, head)
  })
  return upgrades
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
