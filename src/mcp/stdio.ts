import { errorOf, FRAME_MAX_BYTES, frameTooLarge } from './frames.ts'
import type { Session } from './session.ts'

const TOO_LARGE = Symbol('line too large')
const NEWLINE = 0x0a

/** Serves one session, a frame a line, until the input ends and every answer is written. Contract: memory.md 12.1. */
export async function serveLines(
  session: Session,
  input: AsyncIterable<Uint8Array>,
  write: (line: string) => unknown,
): Promise<void> {
  const running = new Set<Promise<void>>()
  const answer = async (line: Uint8Array): Promise<void> => {
    const frame = await session.receive(line)
    if (frame !== undefined) write(`${frame}\n`)
  }
  for await (const line of linesOf(input)) {
    if (line === TOO_LARGE) write(`${errorOf(null, frameTooLarge).frame}\n`)
    else if (!isBlank(line)) {
      const work = answer(line)
      running.add(work)
      void work.finally(() => running.delete(work))
    }
  }
  await Promise.all(running)
}

/** Lines without their ends; one above the limit is not kept, only told of. */
async function* linesOf(input: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array | typeof TOO_LARGE> {
  let parts: Uint8Array[] = []
  let size = 0
  const take = (part: Uint8Array): void => {
    size += part.length
    if (size <= FRAME_MAX_BYTES) parts.push(part)
    else parts = []
  }
  const finish = (): Uint8Array | typeof TOO_LARGE => {
    const line = size > FRAME_MAX_BYTES ? TOO_LARGE : Buffer.concat(parts)
    parts = []
    size = 0
    return line
  }
  for await (const chunk of input) {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      take(chunk.subarray(start, end))
      yield finish()
      start = end + 1
    }
    take(chunk.subarray(start))
  }
  if (size > 0) yield finish()
}

const isBlank = (line: Uint8Array): boolean => line.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d)
