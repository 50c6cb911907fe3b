import { invalidInput } from '../errors.ts'
import type { ChunkerConfig } from './config.ts'
import { isBlank, lineEnd, withoutReturn } from './text.ts'

/**
 * `linesPerCell` lines a Cell, blank ones skipped. Contract: memory.md 5, `jsonl`.
 * @throws MemoryError invalid_input with the number of a line that is not JSON, unless `validate` is off.
 */
export function* splitJsonl(content: string, config: ChunkerConfig): Generator<string> {
  let lines: string[] = []
  let number = 1
  for (let start = content.startsWith('\uFEFF') ? 1 : 0; start < content.length; number++) {
    const end = lineEnd(content, start, content.length)
    if (!isBlank(content, start, end)) {
      const line = content.slice(start, withoutReturn(content, start, end))
      if (config.validate && !isJson(line)) throw invalidInput(`content: line ${number} is not valid JSON`, 'content')
      if (lines.push(line) === config.linesPerCell) {
        yield lines.join('\n')
        lines = []
      }
    }
    start = end + 1
  }
  if (lines.length > 0) yield lines.join('\n')
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
