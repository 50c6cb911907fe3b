import { InvalidArgumentError, Option, type Command as Parser } from 'commander'
import type { Flags, InputValue } from './command.ts'

/** Teaches the parser these flags; hidden ones are understood, but not part of its help. */
export function declareFlags(parser: Parser, flags: Flags, { hidden = false } = {}): void {
  for (const [name, flag] of Object.entries(flags)) {
    const { short, value, help, choices, required } = flag
    const shown = required ? `${help} (required)` : help
    const option = new Option(`${short ? `-${short}, ` : ''}--${name}${value ? ` <${value}>` : ''}`, shown)
    if (choices) option.choices(choices)
    if (flag.list) option.argParser((text: string) => parseList(text, choices))
    if (flag.integer) option.argParser(parseInteger)
    if (flag.repeat) option.argParser((each: string, before?: readonly string[]) => [...(before ?? []), each])
    if (flag.default !== undefined) option.default(flag.default)
    if (required) option.makeOptionMandatory()
    parser.addOption(option.hideHelp(hidden))
    if (flag.negatable) parser.addOption(new Option(`--no-${name}`, 'Not so'))
  }
}

/** The values of these flags, by flag name: whatever was given, and defaults. */
export function readFlags(parser: Parser, flags: Flags): Record<string, InputValue> {
  const values: Record<string, InputValue> = {}
  for (const [name, flag] of Object.entries(flags)) {
    const value: InputValue = parser.getOptionValue(optionOf(parser, name).attributeName())
    values[name] = value ?? (flag.repeat ? [] : undefined)
  }
  return values
}

/** Of these flags, those that stood on the command line at this parser. */
export function readGivenFlags(parser: Parser, flags: Flags): Record<string, InputValue> {
  const values: Record<string, InputValue> = {}
  for (const name of Object.keys(flags)) {
    const option = optionOf(parser, name)
    const attribute = option.attributeName()
    if (parser.getOptionValueSource(attribute) !== 'cli') continue
    values[name] = option.negate ? true : parser.getOptionValue(attribute)
  }
  return values
}

function optionOf(parser: Parser, name: string): Option {
  const option = parser.options.find(({ long }) => long === `--${name}`)
  if (!option) throw new Error(`flag --${name} was not declared`)
  return option
}

function parseInteger(text: string): number {
  const value = Number(text)
  if (!/^[+-]?\d+$/.test(text.trim())) throw new InvalidArgumentError('It must be a whole number.')
  if (!Number.isSafeInteger(value)) throw new InvalidArgumentError(`It must be ${Number.MAX_SAFE_INTEGER} at most.`)
  return value
}

function parseList(text: string, choices: readonly string[] | undefined): string[] {
  const parts = text.split(',').map((part) => part.trim())
  const unknown = parts.find((part) => choices && !choices.includes(part))
  if (choices && unknown !== undefined) {
    throw new InvalidArgumentError(`'${unknown}' is none of ${choices.join(', ')}.`)
  }
  return parts
}
