import { AnswerError, type Said } from '../events.ts'
import { parseJson } from '../json.ts'

/** What may wait, in characters; an event of its own counts for some more. Contract: gateway.md 6. */
const MAX_HELD = 2 * 1024 * 1024
const EVENT = 32

/**
 * Puts calls and what is said beside them one behind the other, as blocks of a message stand: what comes before the
 * arguments of the open call are whole waits for them.
 */
export class CallOrder {
  /** Whether it is whole is looked at only where something waits for it. */
  #open: { readonly index: number; text: string; isWhole: boolean | undefined } | undefined
  #held: Said[] = []
  #size = 0

  /** What may be said now. @throws AnswerError when too much waits */
  arrange(event: Said): Said[] {
    if (event.kind === 'usage') return [event]
    if (event.kind === 'stop') return [...this.rest(), event]
    if (event.kind === 'arguments' && event.index === this.#open?.index) {
      this.#open.text += event.text
      this.#open.isWhole = undefined
      return this.#held.length > 0 && this.#isFree() ? [event, ...this.#released()] : [event]
    }
    if (!this.#isFree()) return this.#hold(event)
    if (event.kind === 'call') this.#open = { index: event.index, text: '', isWhole: undefined }
    else if (event.kind !== 'arguments') this.#open = undefined
    return [event]
  }

  /** What waits, when nothing of the open call comes any more. */
  rest(): Said[] {
    const said: Said[] = []
    while (this.#held.length > 0) {
      this.#open = undefined
      said.push(...this.#released())
    }
    return said
  }

  #isFree(): boolean {
    if (!this.#open) return true
    return (this.#open.isWhole ??= isWhole(this.#open.text))
  }

  #hold(event: Said): never[] {
    const last = this.#held.at(-1)
    const text = 'text' in event ? event.text : ''
    const isMore = last !== undefined && 'text' in last && isSameKind(last, event)
    if (isMore) this.#held[this.#held.length - 1] = { ...last, text: last.text + text }
    else this.#held.push(event)
    this.#size += text.length + (isMore ? 0 : EVENT)
    if (this.#size > MAX_HELD) throw new AnswerError('the arguments of a tool call do not end')
    return []
  }

  /** In the order in which it came; some of it may have to wait for the next call. */
  #released(): Said[] {
    const held = this.#held
    this.#held = []
    this.#size = 0
    return held.flatMap((event) => this.arrange(event))
  }
}

const isSameKind = (a: Said, b: Said): boolean =>
  a.kind === b.kind && ('index' in a ? a.index : -1) === ('index' in b ? b.index : -1)

const isWhole = (text: string): boolean => text.trimEnd().endsWith('}') && parseJson(text) !== undefined
