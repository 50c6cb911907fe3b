import { isMap } from '../../base/json.ts'
import { writeJson } from '../chat/raw-json.ts'
import { EventReader } from '../relay/sse.ts'
import type { AnswerSink } from '../plane/sink.ts'
import type { Assembly, Form } from './form.ts'

/** What is read of a stream to be kept: its frames hold far more than what they say. */
const STREAM_BYTES = 16 * 1024 * 1024
const MISS = ['x-mem-cache', 'miss']

/**
 * A call under way that others may wait for. It stands between the call and its client, and collects what goes through: a
 * stream reaches the client as it comes, JSON when it is known whether it is kept. The call goes on as long as somebody
 * waits for it.
 */
export class Flight implements AnswerSink {
  readonly #client: AnswerSink
  readonly #assembly: Assembly | undefined
  readonly #events = new EventReader()
  readonly #bodies: Buffer[] = []
  #held: string[] | undefined
  #waiting = 0
  #bytes = 0
  #isOdd = false
  #isOver = false
  #abandon: (() => void) | undefined
  dropped: string | undefined
  isGone: boolean

  /** @param form of the surface, where the client asked for a stream */
  constructor(client: AnswerSink, form: Form | undefined) {
    this.#client = client
    this.#assembly = form?.assemble()
    this.isGone = client.isGone
    client.onGone(() => this.#leave())
  }

  /** Somebody waits for the answer. @returns what to call when they wait no more */
  join(): () => void {
    this.#waiting++
    return () => {
      this.#waiting--
      this.#leave()
    }
  }

  #leave(): void {
    if (!this.#client.isGone || this.#waiting > 0 || this.#isOver) return
    this.isGone = true
    this.#abandon?.()
  }

  onGone(tell: () => void): void {
    this.#abandon = tell
  }

  head(status: number, headers: string[]): void {
    this.dropped = headerOf(headers, 'x-mem-dropped')
    if (status === 200 && !this.#assembly) this.#held = headers
    else if (!this.#client.isGone) this.#client.head(status, [...headers, ...MISS])
  }

  write(chunk: Buffer): boolean {
    const mayGoOn = this.#held || this.#client.isGone ? true : this.#client.write(chunk)
    this.#collect(chunk)
    return mayGoOn
  }

  drained(): Promise<void> {
    return this.#client.isGone ? Promise.resolve() : this.#client.drained()
  }

  end(chunk?: Buffer): void {
    if (chunk) this.#collect(chunk)
    this.#isOver = true
    if (!this.#held && !this.#client.isGone) this.#client.end(chunk)
  }

  #collect(chunk: Buffer): void {
    if (!this.#assembly) this.#bodies.push(chunk)
    else if (!this.#isOdd) this.#read(this.#assembly, chunk)
  }

  /** A stream that cannot be read without loss, or is too long, goes through and is not kept. */
  #read(assembly: Assembly, chunk: Buffer): void {
    this.#bytes += chunk.length
    this.#isOdd = this.#bytes > STREAM_BYTES
    try {
      for (const { data } of this.#isOdd ? [] : this.#events.read(chunk)) {
        if (data === '[DONE]') continue
        const event: unknown = JSON.parse(data)
        if (isMap(event)) assembly.read(event)
      }
    } catch {
      this.#isOdd = true
    }
  }

  /** The whole answer as JSON, when the call has ended well; undefined for one that cannot be put together. */
  whole(usage: Parameters<Assembly['whole']>[0]): Buffer | undefined {
    if (!this.#assembly) return Buffer.concat(this.#bodies)
    if (this.#isOdd) return undefined
    try {
      const answer = this.#assembly.whole(usage)
      return answer && Buffer.from(writeJson(answer))
    } catch {
      return undefined
    }
  }

  /** Hands the client what was held back. */
  land(isStored: boolean): void {
    if (!this.#held || this.#client.isGone) return
    this.#client.head(200, [...this.#held, 'x-mem-cache', isStored ? 'stored' : 'miss'])
    this.#client.end(Buffer.concat(this.#bodies))
  }
}

function headerOf(headers: readonly string[], name: string): string | undefined {
  const at = headers.findIndex((each, i) => i % 2 === 0 && each.toLowerCase() === name)
  return at < 0 ? undefined : headers[at + 1]
}
