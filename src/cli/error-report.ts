import { CommanderError } from 'commander'
import { errorText } from '../base/errors.ts'
import { tame } from '../base/tame.ts'
import { MemoryApiError, MemoryNetworkError, MemoryRequestError, MemoryTimeoutError } from '../client/errors.ts'
import { KernelApiError } from '../client/kernel/errors.ts'
import { ConfigError } from '../config/errors.ts'
import { isDiskFull } from '../database/full-disk.ts'
import type { Io } from './command.ts'
import { CliError, EXIT, exitOfStatus } from './exit.ts'
import type { Settings } from './settings.ts'

/** What to tell, and the code to leave with. */
interface Report {
  exitCode: number
  message: string
  hint?: string | undefined
  /** Of what nobody foresaw; a user's mistake has none. */
  stack?: string | undefined
}

interface Run {
  io: Io
  words: readonly string[]
  settings?: Settings
}

/** Tells on stderr what happened and what to do next; gives the exit code. Contract: memory.md 11.1. */
export function reportError(error: unknown, { io, words, settings }: Run): number {
  const report = explain(error, words)
  const label = settings?.color ? '\x1b[31merror:\x1b[39m' : 'error:'
  io.stderr.write(`${label} ${tame(report.message)}\n`)
  if (report.hint !== undefined) io.stderr.write(`  ${tame(report.hint)}\n`)
  if (settings?.verbose && report.stack !== undefined) io.stderr.write(`${report.stack}\n`)
  return report.exitCode
}

function explain(error: unknown, words: readonly string[]): Report {
  if (error instanceof CliError) return { exitCode: error.exitCode, message: error.message, hint: error.hint }
  if (error instanceof MemoryApiError) return explainApiError(error)
  if (error instanceof KernelApiError) return explainKernelError(error, words)
  if (error instanceof MemoryRequestError) return { exitCode: EXIT.usage, message: error.message }
  if (error instanceof MemoryTimeoutError) {
    const hint = 'A write may have been applied all the same: look before you repeat it. --timeout 2m waits longer.'
    return { exitCode: EXIT.failure, message: error.message, hint }
  }
  if (error instanceof MemoryNetworkError) return explainNetworkError(error)
  if (error instanceof ConfigError) {
    const hint = 'Correct it in mem.yaml, the environment or the flags; `mem check-config` tries again.'
    return { exitCode: EXIT.configuration, message: error.message, hint }
  }
  if (error instanceof CommanderError) {
    const hint = `See: mem ${[...words, '--help'].join(' ')}`
    return { exitCode: EXIT.usage, message: error.message.replace(/^error: /, '').replaceAll('\n', ' '), hint }
  }
  if (isDiskFull(error))
    return { exitCode: EXIT.failure, message: 'the disk is full', hint: 'Make room and run it again.' }
  return {
    exitCode: EXIT.failure,
    message: errorText(error),
    hint: storeHint(error) ?? 'This looks like a fault of mem; --verbose shows where.',
    stack: error instanceof Error ? error.stack : undefined,
  }
}

/** For verbs that open the stores themselves: what the machine did not let them do. */
function storeHint(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return STORE_HINTS.find(([codes]) => codes.test(code))?.[1]
}

const STORE_HINTS: readonly (readonly [codes: RegExp, hint: string])[] = [
  [
    /^SQLITE_(CORRUPT|NOTADB)/,
    'The database file is damaged: stop the server, and bring a copy back with `mem backup restore`.',
  ],
  [/^(SQLITE_(READONLY|CANTOPEN|PERM)|EACCES|EPERM|EROFS)/, 'Does this user have the right to read and write there?'],
  [/^SQLITE_(BUSY|LOCKED)/, 'Another program holds the database: wait for its end and run it again.'],
]

const explainNetworkError = ({ message, code = '' }: MemoryNetworkError): Report => ({
  exitCode: EXIT.failure,
  message: message.trim(), // what OpenSSL says ends with a line break
  hint: NETWORK_HINTS[code] ?? 'Check --endpoint (MEM_ENDPOINT).',
})

const UNKNOWN_CERTIFICATE = 'Trust the certificate of the server: NODE_EXTRA_CA_CERTS=server.crt mem ...'
const NO_TLS = 'Does it speak http, without TLS? Check --endpoint (MEM_ENDPOINT).'
/** What to do next, by the system's code. */
export const NETWORK_HINTS: Readonly<Record<string, string>> = {
  ERR_SSL_WRONG_VERSION_NUMBER: NO_TLS,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: NO_TLS,
  UND_ERR_SOCKET: 'It closed the connection: is it stopping, or does it want https? Check --endpoint (MEM_ENDPOINT).',
  ECONNREFUSED: 'Is the server running? Start it with `mem serve`, or point --endpoint (MEM_ENDPOINT) at it.',
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_CERTIFICATE,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_CERTIFICATE,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_CERTIFICATE,
}

function explainApiError(error: MemoryApiError): Report {
  const code = error.envelope?.error_code
  return {
    exitCode: exitOfStatus(error.status),
    message: code === undefined ? error.message : `${error.message} (${code})`,
    hint: hintFor(error),
  }
}

function hintFor({ envelope }: MemoryApiError): string | undefined {
  if (!envelope) return 'The answer is not of the memory service. Check --endpoint (MEM_ENDPOINT).'
  if (envelope.details['resource'] === 'path') return 'Check --endpoint (MEM_ENDPOINT): it has no path of its own.'
  return HINTS[envelope.error_code]
}

/** Where nothing was answered, what stands behind it says why. */
function explainKernelError({ status, message, cause }: KernelApiError, words: readonly string[]): Report {
  if (status === 0) return explain(cause, words)
  return { exitCode: exitOfStatus(status), message, hint: KERNEL_HINTS[status] }
}

const KERNEL_HINTS: Readonly<Record<number, string>> = {
  401: 'Pass the token of the kernel with --token or KERNEL_API_TOKEN.',
  404: "Check the id and the scope (--scope kind:id): the noun's `list` shows what there is.",
  500: "The server's log says more, under the request id that --verbose shows.",
  501: '`mem kernel capabilities` shows what this server can do.',
}

/** What to do next, by `error_code` (memory.md 2.4); the others' messages say it themselves. */
const HINTS: Readonly<Record<string, string>> = {
  unauthorized: 'Pass the key of the server with --api-key or MEM_API_KEY.',
  agent_verification_failed: 'Act as another agent with --agent-id or MEM_AGENT_ID.',
  not_found: 'Check the id and the workspace: `mem workspaces list`, `mem list`.',
  cas_conflict:
    'Somebody changed it meanwhile. Read it again (`mem lookup <mem>`) and repeat, or leave --if-match out.',
  patch_anchor_not_found:
    'old_string must occur exactly once; `mem lookup <mem>` shows the text, "replace_all": true takes all.',
  not_empty: 'Forget the Memories in it first: `mem list`, `mem forget <mem>`.',
  capability_unavailable: 'The server runs without this store; `mem print-config` on its machine shows the drivers.',
  quota_exceeded: "The limit is set in the server's mem.yaml, section `limits`.",
  cannot_unlink_synthetic_edge: 'Auto-link made this Edge; it goes when one of its Memories is forgotten.',
  internal_error: "The server's log says more, under the request id that --verbose shows.",
}
