import type { Usage } from '../chat/events.ts'
import type { Json } from '../chat/json.ts'
import type { Surface } from '../model.ts'
import { ChatForm } from './chat-form.ts'
import { MessagesForm } from './messages-form.ts'
import { ResponsesForm } from './responses-form.ts'

/** A surface's answers as JSON and as streams: either is made of the other, and nothing that a provider adds is lost. */
export interface Form {
  /** Reads a stream event by event. */
  assemble(): Assembly
  /**
   * @param usage of an answer that tells none; undefined where the client did not ask for it
   * @param source what the answer was parsed from
   */
  toStream(answer: Json, usage: Usage | undefined, source: Buffer): string
}

export interface Assembly {
  /** @param data of an event, parsed. @throws Error for what would be lost */
  read(data: Json): void
  /** To be written by `writeJson`; undefined when the stream was none. @param usage where the stream told none */
  whole(usage: Usage): Json | undefined
}

/** Embeddings have no streams. */
export const FORMS: Readonly<Record<Surface, Form | undefined>> = {
  chat: ChatForm,
  messages: MessagesForm,
  responses: ResponsesForm,
  embeddings: undefined,
}
