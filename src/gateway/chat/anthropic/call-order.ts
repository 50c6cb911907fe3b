import type { Said } from '../events.ts'
import { parseJson } from '../json.ts'

type Call = Extract<Said, { kind: 'call' }>

/**
 * Puts calls one behind the other, as blocks of a message stand: a call that begins before the arguments of the open one
 * are whole waits for them.
 */
export class CallOrder {
  #open: { readonly index: number; text: string } | undefined
  #waiting: { readonly call: Call; text: string }[] = []

  /** What may be said now. */
  arrange(event: Said): Said[] {
    if (event.kind === 'usage') return [event]
    if (event.kind === 'call') {
      if (this.#open && !isWhole(this.#open.text)) {
        this.#waiting.push({ call: event, text: '' })
        return []
      }
      this.#open = { index: event.index, text: '' }
      return [event]
    }
    if (event.kind !== 'arguments') {
      const said = [...this.rest(), event]
      this.#open = undefined
      return said
    }
    const waiting = this.#waiting.find(({ call }) => call.index === event.index)
    if (waiting) {
      waiting.text += event.text
      return []
    }
    if (this.#open?.index === event.index) this.#open.text += event.text
    const said: Said[] = [event]
    while (this.#waiting.length > 0 && this.#open && isWhole(this.#open.text)) said.push(...this.#next())
    return said
  }

  /** What waits, when nothing of the open call comes any more. */
  rest(): Said[] {
    const said: Said[] = []
    while (this.#waiting.length > 0) said.push(...this.#next())
    return said
  }

  #next(): Said[] {
    const next = this.#waiting.shift()
    if (!next) return []
    const { call, text } = next
    this.#open = { index: call.index, text }
    return text === '' ? [call] : [call, { kind: 'arguments', index: call.index, text }]
  }
}

const isWhole = (text: string): boolean => text.endsWith('}') && parseJson(text) !== undefined
