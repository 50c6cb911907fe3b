import type { Budget } from '../budget.ts'
import { FunctionError } from '../errors.ts'
import { encodeJson } from '../json.ts'
import { countGraphemes, graphemes } from '../source.ts'
import { toBool, toNumber, toText, type Value } from '../values.ts'

const VERB = /%([-+ #0]*)(\d+|\*)?(?:\.(\d+|\*)?)?(?:\[(\d+)\])?([a-zA-Z%])?/g
const MAX_WIDTH = 1024

interface Verb {
  readonly flags: string
  readonly width: number
  readonly precision: number | undefined
  readonly letter: string
}

/** printf of the customary verbs: `v #v t b d o x X e E f g G s q %`. */
export function format(spec: string, values: readonly Value[], budget: Budget): string {
  let next = 0
  const take = (): Value => {
    const value = values[next++]
    if (value === undefined)
      throw new FunctionError(`the format asks for ${next} values, ${values.length} are given`, 0)
    return value
  }
  const size = (text: string | undefined, absent: number): number => {
    const number = text === undefined ? absent : text === '*' ? (toNumber(take()) ?? -1) : Number(text)
    if (!(number >= 0 && number <= MAX_WIDTH)) throw new FunctionError(`width and precision are 0 to ${MAX_WIDTH}`, 0)
    return number
  }
  let used = 0
  const result = spec.replace(
    VERB,
    (whole, flags: string, width?: string, precision?: string, index?: string, letter?: string) => {
      if (letter === '%') return '%'
      if (letter === undefined) throw new FunctionError(`incomplete verb "${whole}"`, 0)
      const verb = {
        flags,
        width: size(width, 0),
        precision: whole.includes('.') ? size(precision, 0) : undefined,
        letter,
      }
      if (index !== undefined) next = Number(index) - 1
      const position = next + 1
      const text = pad(render(verb, take(), position), verb)
      used = Math.max(used, next)
      budget.text(text.length)
      return text
    },
  )
  if (used < values.length && !/%[^a-zA-Z%]*\[/.test(spec)) {
    throw new FunctionError(`the format uses ${used} of ${values.length} values`, 0)
  }
  return result
}

function render({ flags, precision, letter }: Verb, value: Value, position: number): string {
  switch (letter) {
    case 'v':
      return flags.includes('#') ? encodeJson(value) : (toText(value) ?? encodeJson(value))
    case 's':
    case 'q': {
      const text = required(toText(value), 'text', position)
      const cut = precision === undefined ? text : [...graphemes(text)].slice(0, precision).join('')
      return letter === 'q' ? JSON.stringify(cut) : cut
    }
    case 't':
      return String(required(toBool(value), 'a bool', position))
    default:
      return signed(digits(letter, required(toNumber(value), 'a number', position), precision), flags)
  }
}

function digits(letter: string, value: number, precision: number | undefined): string {
  const places = Math.min(precision ?? 6, 100)
  switch (letter) {
    case 'd':
      return String(Math.trunc(value))
    case 'b':
      return Math.trunc(value).toString(2)
    case 'o':
      return Math.trunc(value).toString(8)
    case 'x':
      return Math.trunc(value).toString(16)
    case 'X':
      return Math.trunc(value).toString(16).toUpperCase()
    case 'f':
    case 'F':
      return fixed(value, places)
    case 'e':
      return exponent(value.toExponential(places))
    case 'E':
      return exponent(value.toExponential(places)).toUpperCase()
    case 'g':
      return general(value, precision)
    case 'G':
      return general(value, precision).toUpperCase()
    default:
      throw new FunctionError(`unknown verb "%${letter}"`, 0)
  }
}

/** At least two digits of exponent. */
const exponent = (text: string): string => text.replace(/e([+-])(\d)$/, 'e$10$2')

function general(value: number, precision: number | undefined): string {
  if (precision === undefined) return exponent(String(value))
  const text = value.toPrecision(Math.min(Math.max(1, precision), 100))
  return exponent(text.includes('.') ? text.replace(/\.?0+(?=e|$)/, '') : text)
}

function signed(text: string, flags: string): string {
  if (text.startsWith('-')) return text
  return flags.includes('+') ? `+${text}` : flags.includes(' ') ? ` ${text}` : text
}

function pad(text: string, { flags, width, letter }: Verb): string {
  const missing = width - countGraphemes(text)
  if (missing <= 0) return text
  if (flags.includes('-')) return text + ' '.repeat(missing)
  if (!flags.includes('0') || 'vsqt'.includes(letter)) return ' '.repeat(missing) + text
  const sign = /^[+\- ]/.exec(text)?.[0] ?? ''
  return sign + '0'.repeat(missing) + text.slice(sign.length)
}

function required<T>(value: T | undefined, expected: string, position: number): T {
  if (value === undefined) throw new FunctionError(`expected ${expected}`, position)
  return value
}

/** Of two neighbours that are equally near the even one, as HCL rounds; `toFixed` takes the one farther from zero. */
function fixed(value: number, places: number): string {
  const text = value.toFixed(places)
  const [whole = '', fraction = ''] = value.toFixed(Math.min(places + 30, 100)).split('.')
  const isTie = /^50*$/.test(fraction.slice(places))
  if (!isTie || !/[13579]$/.test(text)) return text
  return places === 0 ? whole : `${whole}.${fraction.slice(0, places)}`
}
