import type { Command, Flag, Flags, InputValue, Io } from './command.ts'
import { EXIT } from './exit.ts'
import { Output } from './output.ts'
import { GLOBAL_FLAGS, resolveSettings, type Settings } from './settings.ts'

/**
 * Runs a plain command line of one of these verbs, and gives its exit code. Loading the parser of all commands takes as long
 * as a small run; what is not plain (help, mistakes, flags before the verb) is left to it: undefined.
 */
export async function runPlain(
  verbs: Readonly<Record<string, () => Promise<Command>>>,
  [verb = '', ...words]: readonly string[],
  io: Io,
): Promise<number | undefined> {
  const command = await verbs[verb]?.()
  if (!command) return undefined
  const given = readWords(words, command)
  if (!given) return undefined
  let settings: Settings | undefined
  try {
    settings = resolveSettings(given.globals, io)
    await command.run({ io, settings, output: new Output(io, settings) }, given.input)
    return EXIT.ok
  } catch (error) {
    const { reportError } = await import('./error-report.ts')
    return reportError(error, { io, words: [verb], ...(settings && { settings }) })
  }
}

type Input = Record<string, InputValue>

/** Operands and flags by name; undefined for what is not plain. */
function readWords(
  words: readonly string[],
  { args = {}, flags = {} }: Command,
): { globals: Input; input: Input } | undefined {
  const operands: string[] = []
  const own: Input = {}
  const globals: Input = {}
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ''
    if (word === '-' || !word.startsWith('-')) {
      operands.push(word)
      continue
    }
    const [name, inline] = split(word)
    const isOwn = name !== undefined && Object.hasOwn(flags, name)
    const flag = name === undefined ? undefined : isOwn ? flags[name] : globalFlag(name)
    if (name === undefined || !flag) return undefined
    const text = flag.value === undefined ? undefined : (inline ?? words[++at])
    const value = valueOf(flag, text, inline !== undefined, (isOwn ? own : globals)[name])
    if (value === undefined) return undefined
    ;(isOwn ? own : globals)[name] = value
  }
  const input = withArguments(operands, args)
  return input && { globals, input: { ...input, ...withDefaults(own, flags) } }
}

const globalFlag = (name: string): Flag | undefined => new Map<string, Flag>(Object.entries(GLOBAL_FLAGS)).get(name)

/** The name of a flag, and what stands behind `=`. */
function split(word: string): [name: string | undefined, inline?: string] {
  const [, name, inline] = /^--([a-z-]+)(?:=(.*))?$/s.exec(word) ?? []
  if (name !== undefined) return inline === undefined ? [name] : [name, inline]
  const short = Object.entries<Flag>(GLOBAL_FLAGS).find(([, flag]) => `-${flag.short}` === word)
  return [short?.[0]]
}

function valueOf(
  { value, choices, integer, list, repeat }: Flag,
  text: string | undefined,
  inline: boolean,
  before: InputValue,
): InputValue {
  if (value === undefined) return inline ? undefined : true
  if (text === undefined || (!inline && text.startsWith('-') && text !== '-')) return undefined
  const parts = list ? text.split(',').map((part) => part.trim()) : [text]
  if (choices && !parts.every((part) => choices.includes(part))) return undefined
  if (list) return parts
  if (repeat) return [...(Array.isArray(before) ? before : []), text]
  if (!integer) return text
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

function withArguments(operands: readonly string[], args: NonNullable<Command['args']>): Input | undefined {
  const input: Input = {}
  let used = 0
  for (const [name, { many }] of Object.entries(args)) {
    if (used >= operands.length) return undefined
    input[name] = many ? operands.slice(used) : operands[used]
    used = many ? operands.length : used + 1
  }
  return used === operands.length ? input : undefined
}

const withDefaults = (given: Input, flags: Flags): Input =>
  Object.fromEntries(
    Object.entries(flags).map(([name, flag]) => [name, given[name] ?? flag.default ?? (flag.repeat ? [] : undefined)]),
  )
