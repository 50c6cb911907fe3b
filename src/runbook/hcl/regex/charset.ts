/** Inclusive ranges of code points. */
export type Ranges = readonly (readonly [number, number])[]

const MAX_POINT = 0x10ffff

const DIGIT: Ranges = [[48, 57]]
const LOWER: Ranges = [[97, 122]]
const UPPER: Ranges = [[65, 90]]
// prettier-ignore
const SPACE: Ranges = [[9, 10], [12, 13], [32, 32]]
// prettier-ignore
const WORD: Ranges = [[48, 57], [65, 90], [95, 95], [97, 122]]

export const PERL: Readonly<Record<string, Ranges>> = { d: DIGIT, s: SPACE, w: WORD }

// prettier-ignore
export const POSIX: Readonly<Record<string, Ranges>> = {
  alnum: [...DIGIT, ...UPPER, ...LOWER],
  alpha: [...UPPER, ...LOWER],
  ascii: [[0, 127]],
  blank: [[9, 9], [32, 32]],
  cntrl: [[0, 31], [127, 127]],
  digit: DIGIT,
  graph: [[33, 126]],
  lower: LOWER,
  print: [[32, 126]],
  punct: [[33, 47], [58, 64], [91, 96], [123, 126]],
  space: [[9, 13], [32, 32]],
  upper: UPPER,
  word: WORD,
  xdigit: [[48, 57], [65, 70], [97, 102]],
}

/** Everything outside sorted, disjoint ranges. */
export function complement(ranges: Ranges): Ranges {
  const result: [number, number][] = []
  let next = 0
  for (const [low, high] of ranges) {
    if (low > next) result.push([next, low - 1])
    next = high + 1
  }
  if (next <= MAX_POINT) result.push([next, MAX_POINT])
  return result
}

/** A set of code points; ranges and Unicode properties, as the text of a class of the host's expressions. */
export class CharSet {
  private readonly ascii: boolean[] = []
  private readonly test: RegExp

  constructor(classText: string, negated: boolean, ignoreCase: boolean) {
    this.test = new RegExp(`^[${negated ? '^' : ''}${classText}]$`, ignoreCase ? 'iu' : 'u')
    for (let code = 0; code < 128; code++) this.ascii.push(this.test.test(String.fromCharCode(code)))
  }

  has(code: number): boolean {
    return this.ascii[code] ?? (code >= 0 && this.test.test(String.fromCodePoint(code)))
  }
}

const hex = (code: number): string => `\\u{${code.toString(16)}}`

export const classText = (ranges: Ranges): string => ranges.map(([low, high]) => `${hex(low)}-${hex(high)}`).join('')

/** The class text of `\p{name}`: a general category or a script; undefined when there is none of that name. */
export function propertyText(name: string, negated: boolean): string | undefined {
  if (name === 'Any') return classText(negated ? [] : [[0, MAX_POINT]])
  for (const form of [`\\p{${name}}`, `\\p{Script=${name}}`]) {
    try {
      if (/^[A-Za-z_]+$/.test(name) && (form.includes('=') || name.length <= 2)) {
        void RegExp(form, 'u')
        return negated ? `\\P${form.slice(2)}` : form
      }
    } catch {
      continue
    }
  }
  return undefined
}
