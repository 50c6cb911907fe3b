import { spawn, type ChildProcess } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

export interface LogLine {
  readonly time: string
  readonly text: string
}

/** The log of a container while it is written; `end` is emitted behind the last line. */
export class ContainerLog extends EventEmitter<{ line: [LogLine]; end: [] }> {
  readonly lines: LogLine[] = []
  ended = false

  constructor() {
    super()
    this.setMaxListeners(0)
  }

  /** Two lines share a time, as they may in a real log; zeros at the end of the fraction are left out. */
  add(text: string): void {
    const fraction = String(Math.floor(this.lines.length / 2) * 100)
      .padStart(9, '0')
      .replace(/0+$/, '')
    const line = { time: `2026-01-01T00:00:00${fraction && `.${fraction}`}Z`, text }
    this.lines.push(line)
    this.emit('line', line)
  }

  close(): void {
    this.ended = true
    this.emit('end')
  }
}

interface Container {
  command: string[]
  env: { name: string; value: string }[]
  volumeMounts: { name: string; mountPath: string }[]
}

/** A container that runs: its directories on this disk, its process, its log. */
export class RunningContainer {
  readonly log = new ContainerLog()
  readonly ended: Promise<number>
  private readonly directory = mkdtempSync(join(tmpdir(), 'pod-'))
  private readonly process: ChildProcess

  /** @param files of volumes, by volume name */
  constructor(
    { command: [program = '', ...args], env, volumeMounts }: Container,
    files: Record<string, Record<string, string>>,
  ) {
    for (const { name } of volumeMounts) {
      mkdirSync(join(this.directory, name))
      for (const [file, text] of Object.entries(files[name] ?? {}))
        writeFileSync(join(this.directory, name, file), text)
    }
    const here = (text: string): string => {
      const mount = volumeMounts.find(({ mountPath }) => text.startsWith(mountPath))
      return mount ? join(this.directory, mount.name) + text.slice(mount.mountPath.length) : text
    }
    const variables = Object.fromEntries(env.map(({ name, value }) => [name, here(value)]))
    const options = { cwd: join(this.directory, 'work'), env: { PATH: process.env.PATH, ...variables } }
    this.process = spawn(program, args.map(here), { ...options, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    const streams = [this.process.stdout, this.process.stderr].flatMap((stream) => stream ?? [])
    const read = streams.map(async (input) => {
      for await (const line of createInterface({ input })) this.log.add(line)
    })
    this.ended = once(this.process, 'close').then(async ([code]) => {
      await Promise.all(read)
      this.log.close()
      rmSync(this.directory, { recursive: true, force: true })
      return typeof code === 'number' ? code : 137
    })
  }

  kill(): void {
    try {
      if (this.process.pid !== undefined) process.kill(-this.process.pid, 'SIGKILL')
    } catch {
      // it has ended
    }
  }
}

/** The lines that a query asks for, to the end of the log if it follows. */
export async function* logLines(log: ContainerLog, query: Record<string, string>): AsyncGenerator<string> {
  const shown = ({ time, text }: ContainerLog['lines'][number]) =>
    query.timestamps === 'true' ? `${time} ${text}` : text
  const isWanted = ({ time }: { time: string }): boolean =>
    query.sinceTime === undefined || time.slice(0, 19) >= query.sinceTime.slice(0, 19)
  const tail = query.tailLines === undefined ? log.lines.length : Number(query.tailLines)
  let sent = Math.max(0, log.lines.length - tail)
  for (;;) {
    for (; sent < log.lines.length; sent++) {
      const line = log.lines[sent]
      if (line && isWanted(line)) yield shown(line)
    }
    if (log.ended || query.follow !== 'true') return
    await Promise.race([once(log, 'line'), once(log, 'end')])
  }
}
