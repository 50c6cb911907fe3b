import { clip } from '../../base/clip.ts'
import type { ChatEvent, StopReason, Usage } from '../chat/events.ts'
import type { AnswerFacts } from './exchange.ts'

const NAME_CHARACTERS = 512

/** A name or id as a provider told it, as long as records and traces keep it. */
export const nameTold = (name: string | undefined): string | undefined =>
  name === undefined || name.length <= NAME_CHARACTERS ? name : clip(name, NAME_CHARACTERS)

/** What an answer has told of itself so far, gathered event by event. */
export class Facts implements AnswerFacts {
  usage: Usage | undefined
  finishReason: StopReason | undefined
  responseModel: string | undefined
  responseId: string | undefined
  textBytes = 0

  add(event: ChatEvent): void {
    if (event.kind === 'text' || event.kind === 'reasoning' || event.kind === 'arguments') {
      this.textBytes += Buffer.byteLength(event.text)
    } else if (event.kind === 'usage') this.usage = event.usage
    else if (event.kind === 'stop') this.finishReason = event.reason
    else if (event.kind === 'start') {
      this.responseModel = event.model ?? this.responseModel
      this.responseId = event.id ?? this.responseId
    }
  }
}
