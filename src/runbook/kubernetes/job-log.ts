import { sha256 } from '../../base/hash.ts'
import { NodeError } from '../errors.ts'
import { MAX_RESULT_BYTES } from './job-driver.ts'

/** So much of a log is kept, from its end. */
const KEPT = 64 * 1024

export interface JobEnd {
  readonly exitCode: number
  /** What ended the code, such as OOMKilled, where it could not end by itself. */
  readonly reason?: string | undefined
  /** The result file; undefined when there was none, or nothing in it. */
  readonly output?: string
}

/** The log of a job, line by line with the time before each: text of the code, then its result behind the marker. */
export class JobLog {
  end: JobEnd | undefined
  /** Lines taken so far. */
  received = 0
  private readonly marker: string
  private readonly onLine: (line: string) => void
  private readonly data: string[] = []
  private kept = ''
  private last = ''
  /** Lines with that very time. */
  private atLast = 0

  constructor(marker: string, onLine: (line: string) => void) {
    this.marker = marker
    this.onLine = onLine
  }

  get tail(): string {
    return this.kept.slice(-KEPT)
  }

  /** Where a stream that was cut goes on, in whole seconds; what comes twice is passed over by `reader`. */
  get since(): string | undefined {
    return this.last === '' ? undefined : `${this.last.slice(0, 19)}Z`
  }

  /** Takes the lines of one stream, which may begin with lines that an earlier one had. */
  reader(): (line: string) => void {
    const [known, count] = [this.last, this.atLast]
    let repeated = 0
    return (line) => {
      const [, time = '', text = ''] = /^(\S+) ?(.*)$/s.exec(line) ?? []
      const at = sortable(time)
      if (at < known || (at === known && ++repeated <= count)) return
      this.atLast = at === this.last ? this.atLast + 1 : 1
      this.last = at
      this.received++
      this.take(text)
    }
  }

  private take(text: string): void {
    const at = text.indexOf(this.marker)
    const own = at < 0 ? text : text.slice(0, at) // the code's last line may lack its end
    if (own !== '' || at < 0) {
      this.kept += `${own}\n`
      if (this.kept.length > 2 * KEPT) this.kept = this.tail
      this.onLine(own)
    }
    if (at < 0) return
    const [kind, ...rest] = text.slice(at + this.marker.length + 1).split(' ')
    if (kind === 'data') this.data.push(rest.join(''))
    else this.end = this.ended(rest)
  }

  private ended([status, size, hash]: readonly string[]): JobEnd {
    const exitCode = Number(status)
    if (Number(size) > MAX_RESULT_BYTES) {
      throw new NodeError('data_invalid', `the job wrote ${size} bytes to $OUTPUT_FILE, more than ${MAX_RESULT_BYTES}`)
    }
    const bytes = Buffer.from(this.data.join(''), 'base64')
    if (sha256(bytes) !== hash) throw new NodeError('network_error', 'the result of the job was lost on its way')
    return bytes.length > 0 ? { exitCode, output: bytes.toString() } : { exitCode }
  }
}

/** Servers leave out zeros at the end of the fraction. */
function sortable(time: string): string {
  const [, seconds = '', fraction = ''] = /^(.{19})(?:\.(\d+))?/.exec(time) ?? []
  return `${seconds}.${fraction.padEnd(9, '0')}`
}
