import type { CharSet } from './charset.ts'
import { RegexSyntaxError, type Assertion, type RegexNode } from './syntax.ts'

export type Instruction =
  | { readonly op: 'set'; readonly set: CharSet }
  /** Goes on at `first`, and with lower priority at `second`. */
  | { readonly op: 'split'; first: number; second: number }
  | { readonly op: 'jump'; to: number }
  | { readonly op: 'save'; readonly slot: number }
  | { readonly op: 'assert'; readonly assertion: Assertion }
  | { readonly op: 'match' }

const MAX_INSTRUCTIONS = 10_000

/** Thompson's construction; the end of instructions is `match`. */
export function compileProgram(root: RegexNode): Instruction[] {
  const program: Instruction[] = []
  const emit = <T extends Instruction>(instruction: T): T => {
    if (program.length >= MAX_INSTRUCTIONS) throw new RegexSyntaxError('invalid regular expression: too large')
    program.push(instruction)
    return instruction
  }
  const optional = (item: RegexNode, greedy: boolean, loop: boolean): void => {
    const start = program.length
    const split = emit({ op: 'split', first: 0, second: 0 })
    compile(item)
    if (loop) emit({ op: 'jump', to: start })
    const end = program.length
    ;[split.first, split.second] = greedy ? [start + 1, end] : [end, start + 1]
  }
  const repeat = (item: RegexNode, min: number, max: number, greedy: boolean): void => {
    for (let i = 0; i < min; i++) compile(item)
    if (max === Infinity) optional(item, greedy, true)
    else for (let i = min; i < max; i++) optional(item, greedy, false)
  }
  const choice = (items: readonly RegexNode[]): void => {
    const jumps: { op: 'jump'; to: number }[] = []
    for (const [i, item] of items.entries()) {
      const split = i < items.length - 1 ? emit({ op: 'split', first: program.length + 1, second: 0 }) : undefined
      compile(item)
      if (!split) continue
      jumps.push(emit({ op: 'jump', to: 0 }))
      split.second = program.length
    }
    for (const jump of jumps) jump.to = program.length
  }
  const compile = (node: RegexNode): void => {
    switch (node.kind) {
      case 'set':
        emit({ op: 'set', set: node.set })
        break
      case 'sequence':
        node.items.forEach(compile)
        break
      case 'choice':
        choice(node.items)
        break
      case 'repeat':
        repeat(node.item, node.min, node.max, node.greedy)
        break
      case 'group':
        emit({ op: 'save', slot: 2 * node.index })
        compile(node.item)
        emit({ op: 'save', slot: 2 * node.index + 1 })
        break
      case 'assert':
        emit({ op: 'assert', assertion: node.assertion })
    }
  }
  compile({ kind: 'group', index: 0, item: root })
  emit({ op: 'match' })
  return program
}
