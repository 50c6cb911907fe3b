import type { RunReport } from '../../runbook/run/report.ts'
import { CliError } from '../exit.ts'
import type { InputFlags } from './flags.ts'

/** What is not in a journal has to be given again; sensitive inputs too, which must not be shown. */
const AGAIN = ['secret', 'env', 'allow-host', 'allow-path', 'config'] as const

type AgainFlags = Pick<InputFlags, 'secret' | 'env'> & {
  readonly 'allow-host': readonly string[]
  readonly 'allow-path': readonly string[]
  readonly config: string | undefined
  readonly 'deny-private-networks': boolean | undefined
}

/** A word as a shell reads it back. */
const shellWord = (word: string): string =>
  /^[\w./:=,@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`

/** What a run that did not succeed tells, and how to go on. Contract: runbook.md 8. */
export function runFailure(
  { status, exitCode, error, run: { id }, journal }: RunReport,
  file: string,
  flags: AgainFlags,
): CliError {
  const reason = error ? `: ${error.node === '' ? '' : `${error.node}: `}${error.code}: ${error.message}` : ''
  const again = AGAIN.flatMap((flag) => [flags[flag] ?? []].flat().flatMap((value) => [`--${flag}`, value]))
  if (flags['deny-private-networks']) again.push('--deny-private-networks')
  const words = ['mem', 'run', '--resume', journal?.replace(/\/journal.jsonl$/, '') ?? '', file, ...again]
  const resume = journal === undefined ? undefined : `resume: ${words.map(shellWord).join(' ')}`
  return new CliError(exitCode, `run ${id} ${status.replace('_', ' ')}${reason}`, resume)
}
