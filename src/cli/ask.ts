import { PassThrough, Readable, Writable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { ReadStream } from 'node:tty'
import type { Io, Sink } from './command.ts'
import type { prompts } from './prompts.ts'

/** What the questions of the library share. */
interface Terminal {
  input: NodeJS.ReadableStream
  output: NodeJS.WritableStream
  signal: AbortSignal
}

/** Whether somebody may be asked: each question has a flag that answers it where nobody can be. */
export const canAsk = ({ stderr }: Io): boolean => stderr.isTTY === true

/** Only yes is yes: no answer, no terminal, or a signal that aborts because nobody waits any more, is no. */
export const confirm = (io: Io, message: string, signal?: AbortSignal): Promise<boolean> =>
  ask(io, false, (library, terminal) => library.confirm({ message, default: false }, terminal), signal)

/** A line; `standard` when none is typed. */
export const input = (io: Io, message: string, standard: string): Promise<string> =>
  ask(io, standard, (library, terminal) => library.input({ message, default: standard }, terminal))

/** A secret, typed unseen; empty when none is typed. */
export const secret = (io: Io, message: string): Promise<string> =>
  ask(io, '', (library, terminal) => library.password({ message, mask: false }, terminal))

/** One of the choices, the first when none is made. */
export const select = <T extends string>(io: Io, message: string, choices: readonly [T, ...T[]]): Promise<T> =>
  ask(io, choices[0], (library, terminal) => library.select({ message, choices: [...choices] }, terminal))

async function ask<T>(
  io: Io,
  standard: T,
  question: (library: typeof prompts, terminal: Terminal) => Promise<T>,
  given?: AbortSignal,
): Promise<T> {
  if (!canAsk(io)) return standard
  const { prompts: library } = await import('./prompts.ts')
  const over = new AbortController()
  const signal = given ? AbortSignal.any([given, over.signal]) : over.signal
  const { stdin } = io
  const terminal = stdin instanceof ReadStream ? stdin : new PassThrough()
  // Ctrl-D and the end of a pipe settle no question of the library; what was typed before them does.
  const end = (): unknown => setImmediate().then(() => over.abort())
  terminal.once('pause', end).once('end', end)
  try {
    const answer = question(library, { input: terminal, output: outputTo(io.stderr), signal })
    // The library throws away what was typed before its question stood there: a pipe begins after that.
    if (terminal !== stdin) void setImmediate().then(() => Readable.from(stdin).pipe(terminal))
    return await answer
  } catch (error) {
    if (!(error instanceof Error) || !/^(Abort|Exit)PromptError$/.test(error.name)) throw error
    if (error.name === 'ExitPromptError') await interrupt()
    return standard
  } finally {
    terminal.off('pause', end).off('end', end)
    if (terminal !== stdin) stdin.destroy?.()
  }
}

/** Ctrl-C at a question is Ctrl-C: the program ends, or what it does about that has begun. */
async function interrupt(): Promise<void> {
  process.kill(process.pid, 'SIGINT')
  // Handlers hear of it when the event loop has next looked for events, which is between these two.
  await setImmediate()
  await setImmediate()
}

const outputTo = (sink: Sink): NodeJS.WritableStream =>
  sink instanceof Writable
    ? sink
    : new Writable({
        write: (chunk, _encoding, done) => {
          sink.write(String(chunk))
          done()
        },
      })
