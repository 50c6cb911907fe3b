import type { Dirent } from 'node:fs'
import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { parseTimestamp } from '../../base/clock.ts'
import { errorText } from '../../base/errors.ts'
import { CONTENT_MAX, SourceError, tagsOf, TOO_LARGE, type Found, type FoundEdge } from './found.ts'
import { splitFrontMatter, type FrontMatter } from './front-matter.ts'
import { linksIn, LinkTargets } from './markdown-links.ts'

const MARKDOWN = /\.(md|markdown)$/i

/**
 * The Markdown files below a folder, but for hidden ones. A file becomes a Memory, the folder it is in a collection, front
 * matter tags; links to other files become Edges. @throws SourceError when it is no folder that can be read
 */
export async function* readMarkdown(directory: string): AsyncGenerator<Found> {
  const files = await filesBelow(directory)
  const targets = new LinkTargets(files)
  const edges: FoundEdge[] = []
  for (const file of files) {
    try {
      const { fields, body } = await readText(join(directory, file))
      yield memoryOf(file, fields, body)
      const linked = linksIn(body).flatMap((link) => targets.find(file, link) ?? [])
      const others = new Set(linked.filter((target) => target !== file))
      for (const to of others) edges.push({ kind: 'edge', where: file, from: file, to })
    } catch (error) {
      yield { kind: 'fault', where: file, message: errorText(error) }
    }
  }
  yield* edges
}

async function filesBelow(directory: string): Promise<string[]> {
  try {
    if (!(await stat(directory)).isDirectory()) throw new Error('it is no folder')
    return (await markdownIn(directory, '', [])).sort()
  } catch (error) {
    throw new SourceError(errorText(error))
  }
}

/** @param above what it lies in: a link that leads back there is not followed, for it would have no end */
async function markdownIn(directory: string, folder: string, above: readonly string[]): Promise<string[]> {
  const real = await realpath(join(directory, folder))
  if (above.includes(real)) return []
  const files: string[] = []
  for (const entry of await readdir(real, { withFileTypes: true })) {
    const path = posix.join(folder, entry.name)
    if (entry.name.startsWith('.')) continue
    if (await isFolder(entry)) files.push(...(await markdownIn(directory, path, [...above, real])))
    else if (MARKDOWN.test(entry.name)) files.push(path)
  }
  return files
}

async function isFolder(entry: Dirent): Promise<boolean> {
  if (!entry.isSymbolicLink()) return entry.isDirectory()
  const target = await stat(join(entry.parentPath, entry.name)).catch(() => undefined)
  return target?.isDirectory() ?? false
}

async function readText(path: string): Promise<FrontMatter> {
  const found = await stat(path)
  if (!found.isFile()) throw new Error('it is no file') // a pipe would be read without end
  if (found.size > CONTENT_MAX) throw new Error(TOO_LARGE)
  const bytes = await readFile(path)
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new Error('it is not UTF-8 text')
  }
  return splitFrontMatter(text)
}

function memoryOf(file: string, fields: object, body: string): Found {
  const { tags, created, date, updated, ...rest }: Record<string, unknown> = { ...fields }
  const folder = posix.dirname(file)
  const createdAt = timeOf(created ?? date)
  return {
    kind: 'memory',
    where: file,
    key: file,
    content: body,
    tags: { ...Object.fromEntries(wordsOf(tags).map((word) => [word, 'true'])), ...tagsOf(rest), path: file },
    collection: folder === '.' ? undefined : folder,
    chunker: 'markdown',
    createdAt,
    updatedAt: timeOf(updated) ?? createdAt,
  }
}

/** `tags` may be a list, or words with commas or spaces between; a `#` before one is dropped. */
function wordsOf(tags: unknown): string[] {
  const words = Array.isArray(tags) ? tags.map(String) : typeof tags === 'string' ? tags.split(/[,\s]+/) : []
  return words.map((word) => word.trim().replace(/^#/, '')).filter((word) => word !== '')
}

const timeOf = (value: unknown): number | undefined => parseTimestamp(typeof value === 'string' ? value : '')
