import type { ChatEvent } from '../chat/events.ts'
import type { ReasoningPart } from '../chat/form.ts'
import type { Signatures } from './signatures.ts'

/** Keeps the signatures of an answer by its calls, as they come. */
export class SignatureKeeper {
  readonly #signatures: Signatures
  readonly #organizationId: number
  readonly #thoughts: ReasoningPart[] = []
  #text = ''

  constructor(signatures: Signatures, organizationId: number) {
    this.#signatures = signatures
    this.#organizationId = organizationId
  }

  add(event: ChatEvent): void {
    if (event.kind === 'reasoning' && event.family === 'claude') this.#text += event.text
    else if (event.kind === 'signature') {
      this.#thoughts.push({ kind: 'reasoning', family: 'claude', text: this.#text, signature: event.signature })
      this.#text = ''
    } else if (event.kind === 'sealed') {
      this.#thoughts.push({ kind: 'reasoning', family: 'claude', text: '', sealed: event.data })
    } else if (event.kind === 'call') {
      const { id, signature } = event
      if (signature === undefined && this.#thoughts.length === 0) return
      this.#signatures.keep(this.#organizationId, id, {
        thoughts: [...this.#thoughts],
        ...(signature !== undefined && { signature }),
      })
    }
  }
}
