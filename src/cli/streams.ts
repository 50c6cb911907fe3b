import { once } from 'node:events'
import { createReadStream, createWriteStream, existsSync, statSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { PassThrough, pipeline as pipe, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { errorText } from '../base/errors.ts'
import type { Io, Sink } from './command.ts'
import { CliError, EXIT } from './exit.ts'
import { untilStopped } from './until-stopped.ts'

const isGzip = (file: string): boolean => file.endsWith('.gz')
const hasCode = (error: unknown, ...codes: string[]): boolean =>
  error instanceof Error && 'code' in error && codes.includes(String(error.code))

/**
 * What `work` writes, in a new file or (`-`) on standard output; a name that ends in .gz is compressed. The file is there when
 * it is whole; Ctrl-C leaves none. @throws CliError when it exists or cannot be written, 130 when it was interrupted
 */
export async function writeStream<T>(io: Io, file: string, work: (write: Write) => Promise<T>): Promise<T> {
  const meter = meterOn(io.stderr, 'written')
  const metered = (write: Write): Promise<T> =>
    work((text) => {
      meter.add(text.length)
      return write(text)
    })
  try {
    if (file === '-') return await metered((text) => writeTo(io.stdout, text))
    return await untilStopped((signal) => writeFile(file, metered, signal))
  } finally {
    meter.end()
  }
}

type Write = (text: string) => Promise<void>

async function writeTo(out: Sink, text: string): Promise<void> {
  if (out.write(text) === false && out instanceof Writable) await once(out, 'drain')
}

async function writeFile<T>(file: string, work: (write: Write) => Promise<T>, signal: AbortSignal): Promise<T> {
  if (existsSync(file)) {
    throw new CliError(EXIT.failure, `${file} exists, and nothing is overwritten`, 'Name a new file.')
  }
  const draft = `${file}.partial`
  const input = new PassThrough()
  const sink = createWriteStream(draft, { mode: 0o600, flush: true })
  const written = isGzip(file) ? pipeline(input, createGzip(), sink) : pipeline(input, sink)
  // Told by the write that follows, or at the end.
  written.catch(() => undefined)
  try {
    const result = await work(async (text) => {
      signal.throwIfAborted()
      if (!input.write(text)) await Promise.race([once(input, 'drain'), written])
    })
    input.end()
    await written
    await rename(draft, file)
    return result
  } catch (error) {
    input.destroy()
    if (!sink.closed) await once(sink, 'close').catch(() => undefined) // opening, it would make the file after this
    await rm(draft, { force: true }).catch(() => undefined)
    if (signal.aborted) throw new CliError(EXIT.stopped, 'interrupted', 'No file was left behind.')
    if (!hasCode(error, ...UNWRITABLE)) throw error
    throw new CliError(EXIT.failure, `cannot write ${file}: ${errorText(error)}`, 'No file was left behind.')
  }
}

const UNWRITABLE = ['ENOSPC', 'EDQUOT', 'EFBIG', 'ENOENT', 'EACCES', 'EROFS', 'EISDIR', 'ENOTDIR', 'EPERM', 'EIO']

/** The bytes of a file or (`-`) of standard input, unpacked when its name ends in .gz. @throws CliError, also while it is read */
export async function* readStream(io: Io, file: string): AsyncGenerator<Uint8Array> {
  const meter = meterOn(io.stderr, 'read')
  try {
    for await (const chunk of file === '-' ? io.stdin : open(file)) {
      meter.add(chunk.length)
      yield chunk
    }
  } catch (error) {
    if (error instanceof CliError) throw error
    if (hasCode(error, 'Z_BUF_ERROR'))
      throw new CliError(EXIT.failure, `${file} is cut off: it ends within the gzip data`)
    if (hasCode(error, 'Z_DATA_ERROR'))
      throw new CliError(EXIT.failure, `${file} is damaged, or was not compressed although its name ends in .gz`)
    throw new CliError(
      EXIT.failure,
      `cannot read ${file}: ${errorText(error)}`,
      'Check the path; `-` is standard input.',
    )
  } finally {
    meter.end()
  }
}

function open(file: string): AsyncIterable<Uint8Array> {
  if (statSync(file).isDirectory()) throw new CliError(EXIT.failure, `${file} is a folder, not a file`)
  const source = createReadStream(file, { highWaterMark: 256 * 1024 })
  if (!isGzip(file)) return source
  const gunzip = createGunzip()
  pipe(source, gunzip, () => undefined) // its failure comes out of gunzip too
  return gunzip
}

interface Meter {
  add(bytes: number): void
  end(): void
}

const METER_MS = 200

/** On a terminal, a line that tells how much has gone through. */
function meterOn(stderr: Sink, done: string): Meter {
  if (!stderr.isTTY) return { add: () => undefined, end: () => undefined }
  let total = 0
  let shownAt = performance.now()
  return {
    add: (bytes) => {
      total += bytes
      if (performance.now() - shownAt < METER_MS) return
      shownAt = performance.now()
      stderr.write(`\r\x1b[K${Math.round(total / 2 ** 20)} MiB ${done}`)
    },
    end: () => void stderr.write('\r\x1b[K'),
  }
}
