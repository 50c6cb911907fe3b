import type { Output } from './output.ts'
import type { Settings } from './settings.ts'

/** What a program run touches outside itself, so that a test can stand in for it. */
export interface Io {
  /** Destroyed when nobody waits for it any more, so that it doesn't keep the process alive. */
  stdin: AsyncIterable<Uint8Array> & { destroy?(): unknown }
  stdout: Sink
  stderr: Sink
  env: Readonly<Record<string, string | undefined>>
}

export interface Sink {
  write(text: string): unknown
  isTTY?: boolean
}

export interface Context {
  io: Io
  settings: Settings
  output: Output
}

export interface Argument {
  readonly help: string
  readonly choices?: readonly string[]
  readonly optional?: true
  /** One or more of them; only the last argument. */
  readonly many?: true
}

export interface Flag {
  readonly help: string
  /** What the value is, as help shows it; a flag without one is a switch. */
  readonly value?: string
  readonly short?: string
  readonly integer?: true
  /** A comma list. */
  readonly list?: true
  readonly choices?: readonly string[]
  readonly default?: string | number
  readonly required?: true
  /** May be given several times. */
  readonly repeat?: true
  /** `--no-<name>` exists as well, and neither means undefined. */
  readonly negatable?: true
}

type Arguments = Readonly<Record<string, Argument>>
export type Flags = Readonly<Record<string, Flag>>

type Text<T> = T extends { choices: readonly (infer Choice)[] } ? Choice : string
type One<F extends Flag> = F extends { integer: true } ? number : Text<F>

type Value<F extends Flag> = F extends { value: string }
  ? F extends { repeat: true }
    ? readonly One<F>[]
    : | (F extends { list: true } ? One<F>[] : One<F>)
      | (F extends { required: true } | { default: unknown } ? never : undefined)
  : boolean | undefined

type Input<A extends Arguments, F extends Flags> = {
  [K in keyof A]: A[K] extends { many: true }
    ? readonly string[]
    : Text<A[K]> | (A[K] extends { optional: true } ? undefined : never)
} & { [K in keyof F]: Value<F[K]> }

export type InputValue = string | number | boolean | readonly string[] | undefined

/** A command is data: help, completion and parsing come from it. Its path and summary stand in table.ts. */
export interface Command {
  readonly args?: Arguments
  readonly flags?: Flags
  /** What else to know; shown under the summary. */
  readonly notes?: string
  /** Whole command lines, without the leading `mem`. */
  readonly examples: readonly [string, ...string[]]
  run(context: Context, input: Readonly<Record<string, InputValue>>): Promise<void>
}

interface Declaration<A extends Arguments, F extends Flags> extends Command {
  readonly args?: A
  readonly flags?: F
  run(context: Context, input: Input<A, F>): Promise<void>
}

/** Gives `run` the types of the declared arguments and flags, by their names. */
export const defineCommand = <const A extends Arguments = {}, const F extends Flags = {}>(
  command: Declaration<A, F>,
): Command => command

/** The paging flags of every list. */
export const PAGE_FLAGS = {
  limit: { value: 'n', integer: true, help: 'Rows at most' },
  cursor: { value: 'cursor', help: 'Go on where an earlier answer ended' },
} as const
