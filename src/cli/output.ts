import { tame } from '../base/tame.ts'
import type { Io } from './command.ts'
import { CliError, EXIT } from './exit.ts'
import type { Settings } from './settings.ts'

/** For what answers at the address, but knows nothing of us. */
export const foreignAnswer = ({ endpoint }: Settings): CliError =>
  new CliError(EXIT.failure, `${endpoint} answers, but not as a mem server does`, 'Check --endpoint (MEM_ENDPOINT).')

/** One line of text output: fields side by side, the id first (all that --quiet shows). */
export type Row = readonly (string | number | undefined)[]

/** Prints answers on stdout in the chosen format, and remarks on stderr. Contract: memory.md 11.1. */
export class Output {
  readonly #io: Io
  readonly #settings: Settings

  constructor(io: Io, settings: Settings) {
    this.#io = io
    this.#settings = settings
  }

  /** Prints one answer as it came; in text form as `rows`. */
  async answer(value: object, rows: () => readonly Row[]): Promise<void> {
    if (this.#settings.output === 'text') this.#rows(rows())
    else await this.#structured(value, [value])
  }

  /** Prints an answer that is a list of `items`: `jsonl` and text one a line. */
  async list<Item>(answer: object, items: readonly Item[], row: (item: Item) => Row): Promise<void> {
    if (!Array.isArray(items)) throw foreignAnswer(this.#settings)
    const { output } = this.#settings
    if (output === 'text') this.#rows(items.map(row))
    else await this.#structured(answer, items)
    const shown = output === 'json' || output === 'yaml'
    if (!shown && 'next_cursor' in answer) this.note(`more: --cursor ${String(answer.next_cursor)}`)
  }

  /** Prints a text that is itself the answer, with a remark about it; `value` stands for it in the other formats. */
  async text(value: object, text: string, remark?: string): Promise<void> {
    if (this.#settings.output !== 'text') return this.#structured(value, [value])
    if (remark !== undefined) this.note(remark)
    if (text !== '') this.#io.stdout.write(text.endsWith('\n') ? text : `${text}\n`)
  }

  /** For calls that answer without a body: a line in text form, nothing in the others. */
  done(id: string, what: string): void {
    if (this.#settings.output === 'text') this.#rows([[id, what]])
  }

  /** A remark for people, on stderr. */
  note(text: string): void {
    if (this.#settings.quiet) return
    const line = tame(text)
    this.#io.stderr.write(`${this.#settings.color ? `\x1b[2m${line}\x1b[22m` : line}\n`)
  }

  #rows(rows: readonly Row[]): void {
    const lines = rows.map((row) => {
      const [id = '', ...fields] = row
        .filter((field) => field !== undefined && field !== '')
        .map((field) => plain(String(field)))
      if (this.#settings.quiet) return id
      return [this.#settings.color ? `\x1b[1m${id}\x1b[22m` : id, ...fields].join('  ')
    })
    if (lines.length > 0) this.#io.stdout.write(`${lines.join('\n')}\n`)
  }

  async #structured(value: unknown, items: readonly unknown[]): Promise<void> {
    const { output } = this.#settings
    if (output === 'yaml') {
      const { toYaml } = await import('./yaml.ts')
      const text = toYaml(value)
      this.#io.stdout.write(tame(text) === text ? text : tame(toYaml(value, 'QUOTE_DOUBLE')))
    } else if (output === 'jsonl') {
      for (const item of items) this.#io.stdout.write(`${tame(JSON.stringify(item))}\n`)
    } else {
      this.#io.stdout.write(`${tame(JSON.stringify(value, null, 2))}\n`)
    }
  }
}

/** Stored text on one line, without the control characters that could steer a terminal. */
export const plain = (text: string): string => tame(text.replace(/[\s\p{Cc}]+/gu, ' ').trim())

/** The beginning of a text, on one line. */
export function excerpt(text: string, length = 72): string {
  const line = plain(text.slice(0, 4 * length))
  return line.length > length ? `${line.slice(0, length - 1)}…` : line
}

/** `a=b c=d` */
export const tagList = (tags: Readonly<Record<string, string>> = {}): string =>
  Object.entries(tags)
    .map(([key, value]) => `${key}=${value}`)
    .join(' ')

/** `1 Cell`, `2 Cells` */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
