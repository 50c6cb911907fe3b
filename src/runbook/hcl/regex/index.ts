import type { Budget } from '../budget.ts'
import { compileProgram, type Instruction } from './program.ts'
import { parseRegex, type Assertion } from './syntax.ts'

export { RegexSyntaxError } from './syntax.ts'

export interface Match {
  readonly start: number
  readonly end: number
  /** The whole match, then the groups; undefined for one that took no part. */
  readonly groups: readonly (string | undefined)[]
}

/** A compiled expression of RE2 syntax. Matching takes time linear in the text (Pike's machine, leftmost-first). */
export class Regex {
  /** Names of groups by number. */
  readonly names: readonly (string | undefined)[]
  private readonly program: readonly Instruction[]

  constructor(pattern: string) {
    const { node, names } = parseRegex(pattern)
    this.names = names
    this.program = compileProgram(node)
  }

  /** Successive matches that don't overlap; an empty match right behind another one is none. */
  *matches(text: string, budget: Budget): Generator<Match> {
    let previousEnd = -1
    for (let at = 0; at <= text.length;) {
      const slots = this.search(text, at, budget)
      if (!slots) return
      const [start = 0, end = 0] = slots
      const empty = end === at
      const accepted = !(empty && start === previousEnd)
      at = empty ? end + ((text.codePointAt(end) ?? 0) > 0xffff ? 2 : 1) : end
      previousEnd = end
      if (accepted) yield { start, end, groups: this.groups(text, slots) }
    }
  }

  private groups(text: string, slots: readonly number[]): (string | undefined)[] {
    return this.names.map((_, i) => {
      const [from = -1, to = -1] = [slots[2 * i], slots[2 * i + 1]]
      return from < 0 || to < 0 ? undefined : text.slice(from, to)
    })
  }

  /** Capture slots of the leftmost match from `from` on. */
  private search(text: string, from: number, budget: Budget): readonly number[] | undefined {
    const { program } = this
    let current = new Threads(program)
    let next = new Threads(program)
    const fresh: readonly number[] = Array.from({ length: 2 * this.names.length }, () => -1)
    let found: readonly number[] | undefined
    for (let at = from; ;) {
      if (!found) current.add(0, fresh, text, at)
      if (found && current.size === 0) return found
      budget.spend(current.size / 16 + 0.05)
      const code = text.codePointAt(at) ?? -1
      const after = at + (code > 0xffff ? 2 : 1)
      for (let i = 0; i < current.size; i++) {
        const index = current.at(i)
        const instruction = program[index]
        if (instruction?.op === 'match') {
          found = current.slots(index)
          break
        }
        if (code >= 0 && instruction?.op === 'set' && instruction.set.has(code)) {
          next.add(index + 1, current.slots(index), text, after)
        }
      }
      if (code < 0) return found
      ;[current, next] = [next, current]
      next.clear()
      at = after
    }
  }
}

/** States of the machine in order of priority, each once, with its captures. */
class Threads {
  size = 0
  private readonly program: readonly Instruction[]
  private readonly order: Uint16Array
  private readonly captures: (readonly number[] | undefined)[]
  /** Generation in which a state was last added. */
  private readonly seen: Uint32Array
  private generation = 1

  constructor(program: readonly Instruction[]) {
    this.program = program
    this.order = new Uint16Array(program.length)
    this.seen = new Uint32Array(program.length)
    this.captures = Array.from({ length: program.length })
  }

  at(i: number): number {
    return this.order[i] ?? 0
  }

  slots(index: number): readonly number[] {
    return this.captures[index] ?? []
  }

  clear(): void {
    this.size = 0
    this.generation++
  }

  /** Adds what is reachable from `start` without reading a character. */
  add(start: number, slots: readonly number[], text: string, at: number): void {
    const stack: { index: number; slots: readonly number[] }[] = [{ index: start, slots }]
    for (let top = stack.pop(); top; top = stack.pop()) {
      let { index, slots: captured } = top
      while (this.seen[index] !== this.generation) {
        this.seen[index] = this.generation
        const instruction = this.program[index]
        if (!instruction || instruction.op === 'set' || instruction.op === 'match') {
          this.captures[index] = captured
          this.order[this.size++] = index
          break
        }
        if (instruction.op === 'jump') index = instruction.to
        else if (instruction.op === 'split') {
          stack.push({ index: instruction.second, slots: captured })
          index = instruction.first
        } else if (instruction.op === 'save') {
          captured = captured.with(instruction.slot, at)
          index++
        } else if (holds(instruction.assertion, text, at)) index++
        else break
      }
    }
  }
}

function holds(assertion: Assertion, text: string, at: number): boolean {
  switch (assertion) {
    case 'textStart':
      return at === 0
    case 'textEnd':
      return at === text.length
    case 'lineStart':
      return at === 0 || text[at - 1] === '\n'
    case 'lineEnd':
      return at === text.length || text[at] === '\n'
    case 'boundary':
      return isWord(text, at - 1) !== isWord(text, at)
    case 'noBoundary':
      return isWord(text, at - 1) === isWord(text, at)
  }
}

const isWord = (text: string, at: number): boolean => /\w/.test(text.charAt(at))

const CACHE_SIZE = 100
const cache = new Map<string, Regex>()

/** Compiles a pattern, or takes it from the last hundred. @throws RegexSyntaxError */
export function compileRegex(pattern: string): Regex {
  let regex = cache.get(pattern)
  if (!regex) {
    regex = new Regex(pattern)
    if (cache.size >= CACHE_SIZE) cache.clear()
    cache.set(pattern, regex)
  }
  return regex
}
