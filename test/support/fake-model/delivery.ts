import type { ServerResponse } from 'node:http'
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import type { Behaviour } from './script.ts'
import type { Frame, ReceivedCall, Reply } from './wire.ts'

/** Sends an answer as the behaviour has it: whole or in bits, slowly, broken off, or not at all. */
export async function deliver(
  response: ServerResponse,
  reply: Reply,
  behaviour: Behaviour,
  call: ReceivedCall,
  report: (frame: Frame) => void,
): Promise<void> {
  const { socket } = response
  socket?.setNoDelay(true)
  if (behaviour.firstByteMs !== undefined) await pause(behaviour.firstByteMs, call)
  if (call.closedByClientAt !== undefined) return
  call.status = reply.status
  response.writeHead(reply.status, {
    ...reply.headers,
    'content-type': behaviour.contentType ?? reply.contentType,
    ...(behaviour.retryAfter !== undefined && { 'retry-after': String(behaviour.retryAfter) }),
    ...behaviour.headers,
  })
  response.flushHeaders()
  const { silent, cut, reset, paceMs } = behaviour
  const write = writer(response, behaviour, call)
  for (const [i, frame] of reply.frames.entries()) {
    if (call.closedByClientAt !== undefined || silent === i) return
    if (reset === i) return void socket?.resetAndDestroy()
    const bytes = dressed(frame.bytes, i, behaviour, reply)
    if (cut === i) {
      await write(bytes.subarray(0, Math.ceil(bytes.length / 2)))
      return void response.end()
    }
    if (paceMs !== undefined && i > 0) await pause(paceMs, call)
    if (behaviour.pause?.after === i) await pause(behaviour.pause.ms, call)
    await write(bytes)
    report(frame)
    call.sentFrames++
  }
  if (call.closedByClientAt !== undefined || (typeof silent === 'number' && silent >= reply.frames.length)) return
  call.isDone = true
  response.end()
}

/** Ends early when the client has gone. */
async function pause(ms: number, call: ReceivedCall): Promise<void> {
  for (let left = ms; left > 0 && call.closedByClientAt === undefined; left -= 50) await sleep(Math.min(left, 50))
}

/** Other ends of lines, a mark of the byte order, comments: what readers must bear. */
function dressed(bytes: Buffer, i: number, { newline, bom, comments }: Behaviour, { contentType }: Reply): Buffer {
  if ((newline === undefined && !bom && !comments) || !contentType.startsWith('text/event-stream')) return bytes
  const text = `${bom && i === 0 ? '\uFEFF' : ''}${comments ? ': still here\n\n' : ''}${bytes.toString()}`
  return Buffer.from(newline === undefined ? text : text.replaceAll('\n', newline))
}

/** Writes with back-pressure, cut where the behaviour says. */
function writer(response: ServerResponse, { chunk }: Behaviour, call: ReceivedCall): (bytes: Buffer) => Promise<void> {
  let position = 0
  const send = async (bytes: Buffer): Promise<void> => {
    if (bytes.length === 0 || response.destroyed) return
    await new Promise<void>((resolve) => {
      response.once('close', resolve)
      response.write(bytes, () => {
        response.off('close', resolve)
        resolve()
      })
    })
    call.sentBytes += bytes.length
    position += bytes.length
  }
  return async (bytes) => {
    for (const piece of pieces(bytes, position, chunk)) {
      await send(piece)
      if (chunk !== undefined) await turn()
    }
  }
}

function* pieces(bytes: Buffer, position: number, chunk: Behaviour['chunk']): Generator<Buffer> {
  if (chunk === undefined) return yield bytes
  const ends =
    typeof chunk === 'number'
      ? Array.from({ length: Math.ceil(bytes.length / chunk) - 1 }, (_, i) => (i + 1) * chunk)
      : chunk.map((place) => place - position).filter((end) => end > 0 && end < bytes.length)
  let start = 0
  for (const end of [...ends, bytes.length]) {
    yield bytes.subarray(start, end)
    start = end
  }
}
