import pino, { type LogFn, type Logger } from 'pino'
import { redact } from './redact.ts'

/** Paths that may hold secrets, whatever is logged. */
const SECRETS = ['authorization', 'api_key', 'apiKey', 'cookie', '*.authorization', '*.api_key', '*.apiKey', '*.cookie']

/** Lines are written many at a time: each by itself costs more than to answer a request. */
const BUFFER_BYTES = 4096
const BUFFER_MS = 100
const WARN = 40

/**
 * Logs to standard error, so that standard output stays for what a person or a program asked for. `text` is for people:
 * time, level, message, then the fields.
 */
export function createLogger(level: string, format: 'json' | 'text'): Logger {
  const destination = pino.destination({ fd: 2, sync: false, minLength: BUFFER_BYTES, periodicFlush: BUFFER_MS })
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: SECRETS, censor: '[REDACTED]' },
    formatters: { level: (label: string) => ({ level: label }) },
    hooks: {
      streamWrite: redact,
      /** What somebody should look at is there at once. */
      logMethod(this: Logger, line: Parameters<LogFn>, write: LogFn, at: number): void {
        write.apply(this, line)
        if (at >= WARN) destination.flush()
      },
    },
  }
  if (format === 'json') return pino(options, destination)
  return pino(options, { write: (line: string) => void destination.write(toText(line)) })
}

function toText(line: string): string {
  const { time, level, msg, ...fields }: Record<string, unknown> = JSON.parse(line)
  const rest = Object.entries(fields).map(
    ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  return `${String(time).slice(11, 23)} ${String(level).toUpperCase().padEnd(5)} ${[String(msg), ...rest].join(' ')}\n`
}
