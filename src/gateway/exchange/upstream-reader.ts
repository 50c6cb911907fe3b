import { AnthropicReader } from '../chat/anthropic/read-answer.ts'
import { ConverseReader } from '../chat/converse/read-answer.ts'
import type { ChatEvent } from '../chat/events.ts'
import { GeminiReader } from '../chat/gemini/read-answer.ts'
import { OpenAiReader } from '../chat/openai/read-answer.ts'
import type { Dialect } from '../model.ts'
import { EventStreamReader, type EventMessage } from '../relay/aws-event-stream.ts'
import { EventReader } from '../relay/sse.ts'

/** Reads the answer of one call, whole or in chunks. */
export interface UpstreamReader {
  /** @throws AnswerError */
  whole(body: string): ChatEvent[]
  /** What these bytes complete, up to what cannot be read. @throws AnswerError, EventTooLargeError, EventStreamError */
  read(chunk: Buffer): Iterable<ChatEvent>
  /** What was left when the provider ended. */
  close(): Iterable<ChatEvent>
  /** The provider says with an event of its own that nothing follows. */
  readonly isOver: boolean
  /** Any event came but a ping. */
  readonly hasHeard: boolean
}

/** @param callId makes the ids of calls that a provider leaves out */
export function readerOf(dialect: Dialect, callId: (index: number) => string): UpstreamReader {
  switch (dialect) {
    case 'openai': {
      const reader = new OpenAiReader(callId)
      return new LineReader(
        (data) => reader.read(data),
        (data) => reader.read(data),
        isDone,
      )
    }
    case 'anthropic': {
      const reader = new AnthropicReader()
      return new LineReader(
        (data) => reader.readMessage(data),
        (data) => reader.read(data),
        isMessageStop,
      )
    }
    case 'gemini': {
      const reader = new GeminiReader(callId)
      return new LineReader(
        (data) => reader.read(data),
        (data) => reader.read(data),
        () => false,
      )
    }
    case 'converse':
      return new MessageReader()
  }
}

const isDone = (data: string): boolean => data === '[DONE]'
const isMessageStop = (data: string, event: string): boolean =>
  event === 'message_stop' || /"type":\s*"message_stop"/.test(data)

type Read = (data: string) => ChatEvent[]

class LineReader implements UpstreamReader {
  readonly whole: Read
  readonly #event: Read
  readonly #isStop: (data: string, event: string) => boolean
  readonly #lines = new EventReader()
  isOver = false
  hasHeard = false

  constructor(whole: Read, event: Read, isStop: (data: string, event: string) => boolean) {
    this.whole = whole
    this.#event = event
    this.#isStop = isStop
  }

  *read(chunk: Buffer): Iterable<ChatEvent> {
    for (const { event, data } of this.#lines.read(chunk)) {
      if (event === 'ping' || data === '') continue
      this.hasHeard = true
      if (data.length < STOP_LENGTH && this.#isStop(data, event)) this.isOver = true
      yield* this.#event(data)
    }
  }

  close(): Iterable<ChatEvent> {
    return this.read(END)
  }
}

/** An end of line twice ends an event that a provider left open. */
const END = Buffer.from('\n\n')

/** A stop event is short. */
const STOP_LENGTH = 128

class MessageReader implements UpstreamReader {
  readonly #reader = new ConverseReader()
  readonly #messages = new EventStreamReader()
  #hasStopped = false
  isOver = false
  hasHeard = false

  whole(body: string): ChatEvent[] {
    return this.#reader.readAnswer(body)
  }

  *read(chunk: Buffer): Iterable<ChatEvent> {
    for (const message of this.#messages.read(chunk)) {
      this.hasHeard = true
      const type = typeOf(message)
      // Usage comes behind the stop, and nothing behind it.
      if (type === 'messageStop') this.#hasStopped = true
      if (type === 'metadata' && this.#hasStopped) this.isOver = true
      yield* this.#reader.read(type, message.payload || '{}')
    }
  }

  close(): Iterable<ChatEvent> {
    return []
  }
}

function typeOf({ headers }: EventMessage): string {
  const code = headers.get(':error-code')
  if (code !== undefined) return code.endsWith('Exception') ? code : `${code}Exception`
  return headers.get(':exception-type') ?? headers.get(':event-type') ?? ''
}
