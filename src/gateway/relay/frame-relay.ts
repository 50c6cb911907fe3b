import { EventTooLargeError } from './sse.ts'
import { frameEnd } from './frames.ts'

/** An unfinished event is held back up to here; what is longer is none that a relay changes. */
const HELD_BYTES = 64 * 1024
const MAX_EVENT_BYTES = 16 * 1024 * 1024

/** Who looks at the events that pass. */
export interface FrameEditor {
  /** These bytes are one whole event that passes unchanged. */
  repeats(chunk: Buffer): boolean
  /** What to send in place of an event, as Latin-1: undefined for its own bytes, empty for nothing. */
  frame(raw: string): string | undefined
}

/**
 * Cuts a stream into events and passes their bytes on, whole and untouched where nothing changes them: a chunk that ends
 * with an event goes out as it came. Contract: gateway.md 6.
 */
export class FrameRelay {
  readonly #editor: FrameEditor
  /** Of the event whose end has not come, as Latin-1. */
  #pieces: string[] = []
  #bytes = 0
  /** Its bytes that were not passed on yet. */
  #held: Buffer[] = []
  #isReleased = false

  constructor(editor: FrameEditor) {
    this.#editor = editor
  }

  /** The first bytes of an event have gone out, its last have not. */
  get isInside(): boolean {
    return this.#isReleased
  }

  /**
   * Passes on what a chunk completes.
   * @param out takes the bytes, those before a failure of the edit too
   * @throws EventTooLargeError above 16 MiB
   */
  read(chunk: Buffer, out: Buffer[]): void {
    if (this.#bytes === 0 && this.#editor.repeats(chunk)) {
      out.push(chunk)
      return
    }
    const text = chunk.toString('latin1')
    const lead = this.#bytes === 0 ? '' : this.#lead()
    const hasReturn = text.includes('\r') || lead.includes('\r')
    let end = lead === '' ? frameEnd(text, 0, hasReturn) : frameEnd(lead + text, 0, hasReturn)
    if (end >= 0) end -= lead.length
    let kept = 0
    let at = 0
    while (end >= 0) {
      const isWhole = this.#bytes === 0
      const raw = isWhole ? text.slice(at, end) : this.#joined(text.slice(at, end))
      let edited: string | undefined
      try {
        edited = this.#editor.frame(raw)
      } catch (error) {
        if (at > kept) out.push(chunk.subarray(kept, at))
        throw error
      }
      if (edited === undefined || this.#isReleased) out.push(...this.#held)
      else {
        if (at > kept) out.push(chunk.subarray(kept, at))
        if (edited !== '') out.push(Buffer.from(edited, 'latin1'))
        kept = end
      }
      if (!isWhole) this.#forget()
      at = end
      end = frameEnd(text, at, hasReturn)
    }
    if (at > kept) out.push(kept === 0 && at === chunk.length ? chunk : chunk.subarray(kept, at))
    if (at < text.length) this.#keep(chunk.subarray(at), text.slice(at), out)
  }

  /** The event whose end never came, read as if it had. */
  end(out: Buffer[]): void {
    if (this.#bytes === 0) return
    const edited = this.#editor.frame(this.#joined(''))
    if (edited === undefined || this.#isReleased) out.push(...this.#held)
    else if (edited !== '') out.push(Buffer.from(edited, 'latin1'))
    this.#forget()
  }

  #keep(bytes: Buffer, text: string, out: Buffer[]): void {
    this.#pieces.push(text)
    this.#bytes += bytes.length
    if (this.#bytes > MAX_EVENT_BYTES) throw new EventTooLargeError('an event is above 16 MiB')
    if (!this.#isReleased && this.#bytes <= HELD_BYTES) {
      this.#held.push(bytes)
      return
    }
    out.push(...this.#held, bytes)
    this.#held = []
    this.#isReleased = true
  }

  /** An end may have begun before this chunk. */
  #lead(): string {
    let lead = ''
    for (let i = this.#pieces.length - 1; i >= 0 && lead.length < 3; i--)
      lead = (this.#pieces[i] ?? '').slice(-3) + lead
    return lead.slice(-3)
  }

  #joined(last: string): string {
    return this.#pieces.join('') + last
  }

  #forget(): void {
    this.#pieces = []
    this.#bytes = 0
    this.#held = []
    this.#isReleased = false
  }
}
