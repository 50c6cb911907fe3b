import { identifierEnd, lineEnd } from './lexer.ts'

const OPENERS = '([{'
const CLOSERS = ')]}'

/**
 * Finds where parsing goes on behind a broken item: at the end of the first line on which the item's brackets are
 * balanced, or, when they aren't, at the end of the line of the fault.
 */
export class RecoveryScanner {
  private readonly text: string
  /** Characters that balanced scans may still read, so that faults on every line stay linear. */
  private budget: number

  constructor(text: string) {
    this.text = text
    this.budget = 4 * text.length + 1000
  }

  /** `start` is where the item begins, `fault` the end of what was understood of it. */
  resume(start: number, fault: number): number {
    return this.balanced(start, fault) ?? lineEnd(this.text, fault)
  }

  private balanced(start: number, fault: number): number | undefined {
    const { text } = this
    const open: number[] = []
    let at = start
    while (at < text.length) {
      const character = text.charAt(at)
      const from = at
      if (character === '\n' && open.length === 0 && at >= fault) return at
      if (character === '"') at = stringEnd(text, at)
      else if (character === '#' || text.startsWith('//', at)) at = lineEnd(text, at)
      else if (text.startsWith('<<', at)) at = heredocEnd(text, at)
      else {
        at++
        if (OPENERS.includes(character)) open.push(OPENERS.indexOf(character))
        else if (CLOSERS.includes(character) && open.pop() !== CLOSERS.indexOf(character)) return undefined
      }
      this.budget -= at - from
      if (this.budget < 0) return undefined
    }
    return open.length === 0 ? at : undefined
  }
}

/** Behind the next quote, or at the end of the line. Quotes inside `${}` come in pairs, so they need no stack. */
function stringEnd(text: string, quote: number): number {
  for (let at = quote + 1; at < text.length; at++) {
    const character = text.charAt(at)
    if (character === '"') return at + 1
    if (character === '\n') return at
    if (character === '\\') at++
  }
  return text.length
}

function heredocEnd(text: string, at: number): number {
  const nameStart = text[at + 2] === '-' ? at + 3 : at + 2
  const nameEnd = identifierEnd(text, nameStart)
  const name = text.slice(nameStart, nameEnd)
  if (name === '') return at + 2
  for (let line = text.indexOf('\n', nameEnd); line >= 0; line = text.indexOf('\n', line + 1)) {
    const end = lineEnd(text, line + 1)
    if (text.slice(line + 1, end).trim() === name) return end
  }
  return text.length
}
