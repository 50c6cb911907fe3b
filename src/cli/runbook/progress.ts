import type { RunEvent } from '../../runbook/run/options.ts'
import type { Sink } from '../command.ts'
import { excerpt } from '../output.ts'

const FRAMES = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'
const FRAME_MS = 80
const SHOWN = 2

/** Tells on stderr how a run goes: a line that changes on a terminal, else a line for each settled node. */
export interface Progress {
  /** On a terminal, events are wanted as they happen. */
  readonly live: boolean
  event(event: RunEvent): void
  /** Leaves the terminal to a question until it is answered. */
  during<T>(question: () => Promise<T>): Promise<T>
  end(): void
}

export const progressOn = (stderr: Sink): Progress => (stderr.isTTY ? new Spinner(stderr) : new Lines(stderr))

class Lines implements Progress {
  readonly live = false
  private readonly stderr: Sink

  constructor(stderr: Sink) {
    this.stderr = stderr
  }

  event(event: RunEvent): void {
    const line = lineOf(event)
    if (line !== undefined) this.stderr.write(`${line}\n`)
  }

  during<T>(question: () => Promise<T>): Promise<T> {
    return question()
  }

  end(): void {}
}

class Spinner implements Progress {
  readonly live = true
  private readonly stderr: Sink
  private readonly running = new Set<string>()
  private settled = 0
  private frame = 0
  private questions = 0
  private readonly timer: NodeJS.Timeout

  constructor(stderr: Sink) {
    this.stderr = stderr
    this.timer = setInterval(() => this.draw(), FRAME_MS)
    this.timer.unref()
  }

  event(event: RunEvent): void {
    const { event: name, node = '' } = event
    if (name === 'node.started') this.running.add(node)
    if (name === 'node.finished') {
      this.running.delete(node)
      this.settled++
    }
    const isNews = name === 'node.log' || name === 'node.retry' || event['status'] === 'failed'
    const line = isNews ? lineOf(event) : undefined
    if (line !== undefined) this.stderr.write(`\r\x1b[K${line}\n`)
  }

  async during<T>(question: () => Promise<T>): Promise<T> {
    this.questions++
    this.stderr.write('\r\x1b[K')
    try {
      return await question()
    } finally {
      this.questions--
    }
  }

  end(): void {
    clearInterval(this.timer)
    this.stderr.write('\r\x1b[K')
  }

  private draw(): void {
    if (this.questions > 0) return
    this.frame = (this.frame + 1) % FRAMES.length
    // one line at most: what wraps can't be taken back
    const names = [...this.running].slice(0, SHOWN).map((name) => excerpt(name, 20))
    const more = this.running.size > SHOWN ? [`${this.running.size - SHOWN} more`] : []
    const running = [...names, ...more].join(', ')
    this.stderr.write(`\r\x1b[K${FRAMES[this.frame] ?? ''} ${this.settled} done${running && `, running: ${running}`}`)
  }
}

function lineOf(event: RunEvent): string | undefined {
  const { event: name, node, status, durationMs, error, attempt, delayMs, message } = event
  if (name === 'node.log') return `${node}: ${String(message)}`
  const reason = errorOf(error)
  if (name === 'node.retry') return `${node}: attempt ${String(attempt)} failed${reason}; next in ${String(delayMs)} ms`
  if (name !== 'node.finished' || status === 'unreached') return undefined
  return `${node} ${String(status)} ${String(durationMs)} ms${reason}`
}

function errorOf(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error) || !('message' in error)) return ''
  return `: ${String(error.code)}: ${String(error.message)}`
}
