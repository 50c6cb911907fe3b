import { splitGo } from './code-go.ts'
import type { ChunkerConfig, ChunkerName } from './config.ts'
import { splitCsv } from './csv.ts'
import { pack } from './default.ts'
import { splitJsonl } from './jsonl.ts'
import { splitMarkdown } from './markdown.ts'
import { isBlank } from './text.ts'

export { CHUNKERS, chunkerNamed, parseChunkerConfig, type ChunkerConfig, type ChunkerName } from './config.ts'

const splitDefault = (content: string, { targetBytes }: ChunkerConfig): Iterable<string> =>
  pack(content, 0, content.length, targetBytes)

const SPLITTERS: Readonly<Record<ChunkerName, (content: string, config: ChunkerConfig) => Iterable<string>>> = {
  default: splitDefault,
  markdown: (content, { targetBytes }) => splitMarkdown(content, targetBytes),
  'no-chunk': (content) => [content],
  'code-go': (content, config) => splitGo(content) ?? splitDefault(content, config),
  csv: splitCsv,
  jsonl: splitJsonl,
}

/**
 * Texts of the Cells of a whole content, in `seq` order; none when it is blank. Contract: memory.md 5.
 * @throws MemoryError invalid_input that names the line where the content is not what the chunker reads.
 */
export const split = (name: ChunkerName, config: ChunkerConfig, content: string): string[] =>
  isBlank(content) ? [] : [...SPLITTERS[name](content, config)]
