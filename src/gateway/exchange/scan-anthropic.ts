import { AnthropicReader } from '../chat/anthropic/read-answer.ts'
import { AnswerError, type ChatEvent } from '../chat/events.ts'
import { bytesOf, readFrame } from '../relay/frames.ts'
import { RepeatedFrame } from '../relay/repeated-frame.ts'
import { eventFault, type FaultView } from './faults.ts'
import type { StreamStep } from './exchange.ts'
import { Facts } from './facts.ts'
import type { Scan } from './scan.ts'

const DELTA = 'event: content_block_delta'
const STOP = 'event: message_stop\ndata: {"type":"message_stop"}\n\n'
const SAID = ['text"', 'thinking"', 'partial_json"']

/** Events of Anthropic's messages. */
export class AnthropicScan implements Scan {
  readonly facts = new Facts()
  state: StreamStep['state'] = 'waiting'
  readonly #reader = new AnthropicReader()
  readonly #view: FaultView
  readonly #last = new RepeatedFrame()

  constructor(view: FaultView) {
    this.#view = view
  }

  repeats(chunk: Buffer): boolean {
    const bytes = this.#last.bytesOf(chunk)
    if (bytes > 0) this.facts.textBytes += bytes
    return bytes >= 0
  }

  frame(raw: string): undefined {
    if (raw.startsWith(DELTA)) {
      for (const name of SAID) this.facts.textBytes += bytesOf(raw, name)
      this.state = 'content'
      this.#last.learn(raw, SAID)
      return
    }
    const { event, data } = readFrame(raw)
    if (data === '' || event === 'ping') return
    for (const said of this.#read(data)) {
      if (said.kind === 'error') throw eventFault(said.data, this.#view, undefined, this.facts)
      this.facts.add(said)
      if (said.kind === 'start' && this.state === 'waiting') this.state = 'started'
      else if (said.kind === 'stop') this.state = 'finished'
      else if (said.kind !== 'start' && said.kind !== 'usage') this.state = 'content'
    }
    if (event === 'message_stop' || (event === '' && data.includes('"message_stop"'))) this.state = 'stopped'
  }

  /** Why the message ends is its last news: clients wait for what says that nothing follows all the same. */
  end(): string | undefined {
    const isFinished = this.state === 'finished'
    if (isFinished) this.state = 'stopped'
    return isFinished ? STOP : this.state === 'stopped' ? '' : undefined
  }

  /** What the reader does not know is the client's to judge. */
  #read(data: string): ChatEvent[] {
    try {
      return this.#reader.read(data)
    } catch (error) {
      if (error instanceof AnswerError) return []
      throw error
    }
  }
}
