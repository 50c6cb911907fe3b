import { posix } from 'node:path'
import { markdownParts } from '../chunker/markdown.ts'

const WIKI = /\[\[([^\]|#^]*)(?:[#^][^\]|]*)?(?:\|[^\]]*)?\]\]/g
const INLINE = /\]\(\s*(?:<([^>]*)>|([^\s)]+))[^)]*\)/g
const CODE_SPAN = /(`+)[^]*?[^`]\1(?!`)/g
const SCHEME = /^[a-z][a-z0-9+.-]*:/i

/** What a text links to: paths as written, without fragments; `isWiki` for `[[names]]`, which are looked for everywhere. */
export interface Link {
  target: string
  isWiki: boolean
}

/** Links outside code, each once, in order. */
export function linksIn(body: string): Link[] {
  const prose = markdownParts(body)
    .filter((part) => !part.fence)
    .map((part) => body.slice(part.start, part.end).replaceAll(CODE_SPAN, ''))
    .join('\n')
  const wiki = [...prose.matchAll(WIKI)].map(([, target = '']) => ({ target: target.trim(), isWiki: true }))
  const inline = [...prose.matchAll(INLINE)].flatMap(([, quoted, plain = '']) => {
    const target = decode((quoted ?? plain).replace(/[?#].*$/, ''))
    return SCHEME.test(target) || target.startsWith('/') ? [] : [{ target, isWiki: false }]
  })
  const found = new Map([...wiki, ...inline].map((link) => [`${link.isWiki} ${link.target}`, link]))
  return [...found.values()].filter(({ target }) => target !== '')
}

function decode(target: string): string {
  try {
    return decodeURIComponent(target)
  } catch {
    return target
  }
}

const nameOf = (path: string): string =>
  posix
    .basename(path)
    .replace(/\.(md|markdown)$/i, '')
    .toLowerCase()

/** Finds the file a link means, among all files of the folder. */
export class LinkTargets {
  readonly #files: ReadonlySet<string>
  readonly #byName = new Map<string, string[]>()

  /** Paths with `/`, below the folder, sorted. */
  constructor(files: readonly string[]) {
    this.#files = new Set(files)
    for (const file of files) {
      const known = this.#byName.get(nameOf(file))
      if (known) known.push(file)
      else this.#byName.set(nameOf(file), [file])
    }
  }

  /**
   * A relative link is a path from its file. A name is that of a file anywhere: one whose path ends with what is written,
   * beside the file if there is one, else the one nearest to the top, else the first by path.
   */
  find(from: string, { target, isWiki }: Link): string | undefined {
    const directory = posix.dirname(from)
    if (!isWiki) {
      const path = posix.join(directory, target)
      return [path, `${path}.md`].find((each) => this.#files.has(each))
    }
    const written = posix
      .join('/', target)
      .replace(/\.(md|markdown)$/i, '')
      .toLowerCase()
    const fitting = (this.#byName.get(nameOf(target)) ?? []).filter((file) =>
      `/${file}`
        .replace(/\.(md|markdown)$/i, '')
        .toLowerCase()
        .endsWith(written),
    )
    const depth = (file: string): number => file.split('/').length
    return (
      fitting.find((file) => posix.dirname(file) === directory) ??
      fitting.toSorted((a, b) => depth(a) - depth(b) || (a < b ? -1 : 1))[0]
    )
  }
}
