import pino, { type LogFn, type Logger } from 'pino'
import { toTimestamp } from './clock.ts'
import { LineBuffer } from './line-buffer.ts'
import { redact } from './redact.ts'

/** What every request leaves in the log. */
export interface RequestLine {
  readonly method: string
  readonly path: string
  readonly status: number
  readonly duration_ms: number
  readonly request_id: string
}

const standardError = new LineBuffer(2)
/** Where lines of each logger go, made as pino makes them. */
const writers = new WeakMap<Logger, (line: string) => void>()

/** Paths that may hold secrets, whatever is logged. */
const SECRETS = ['authorization', 'api_key', 'apiKey', 'cookie', '*.authorization', '*.api_key', '*.apiKey', '*.cookie']

const WARN = 40
const INFO_LINE = '{"level":"info","time":"'

/**
 * Logs to standard error, so that standard output stays for what a person or a program asked for. `text` is for people:
 * time, level, message, then the fields.
 */
export function createLogger(
  level: string,
  format: 'json' | 'text',
  out: Pick<LineBuffer, 'write' | 'flush' | 'whenBack'> = standardError,
): Logger {
  const write = (line: string): void => out.write(format === 'json' ? line : toText(line))
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: SECRETS, censor: '[REDACTED]' },
    formatters: { level: (label: string) => ({ level: label }) },
    hooks: {
      streamWrite: redact,
      /** What somebody should look at is there at once. */
      logMethod(this: Logger, line: Parameters<LogFn>, log: LogFn, at: number): void {
        log.apply(this, line)
        if (at >= WARN) out.flush()
      },
    },
  }
  const log = pino(options, { write })
  writers.set(log, write)
  out.whenBack = (lost) =>
    log.warn({ lost_bytes: lost }, 'the log could not be written for a while; what it said is lost')
  return log
}

/**
 * Writes the lines of requests. A plain one, of which nothing must be escaped or hidden as nothing in it is the client's, is
 * put together here: pino takes ten times as long.
 */
export function requestLog(log: Logger): (line: RequestLine, isPlain: boolean) => void {
  const write = writers.get(log)
  return (line, isPlain) => {
    if (!isPlain || !write) log.info(line, 'request')
    else if (log.isLevelEnabled('info')) write(plainLine(line))
  }
}

const plainLine = ({ method, path, status, duration_ms: ms, request_id: id }: RequestLine): string =>
  `${INFO_LINE}${toTimestamp(Date.now())}","method":"${method}","path":"${path}","status":${status},"duration_ms":${ms},"request_id":"${id}","msg":"request"}\n`

function toText(line: string): string {
  const { time, level, msg, ...fields }: Record<string, unknown> = JSON.parse(line)
  const rest = Object.entries(fields).map(
    ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  return `${String(time).slice(11, 23)} ${String(level).toUpperCase().padEnd(5)} ${[String(msg), ...rest].join(' ')}\n`
}
