import { tame } from '../base/tame.ts'
import { EDGE_TYPES } from '../memory/model.ts'

/** How values are written on pages. Templates see these names; all that they give is text, escaped where it is shown,
 * but for what says that it is HTML. */
export interface Format {
  /** `12 s ago` within a day, else the day. */
  ago(timestamp: string): string
  /** Date and time to the second, UTC. */
  time(timestamp: string): string
  /** An id to be told apart at a glance: prefix and last characters. */
  short(id: string): string
  /** The beginning of a text, on one line, tame. */
  line(text: string, length: number): string
  /** The first line that says something, without the marks of a heading. */
  title(text: string, length: number): string
  /** What somebody else wrote, so that it reads as it is: see `tame`. */
  tame(text: string): string
  /** The same of any value. */
  json(value: unknown): string
  score(value: number): string
  size(characters: number): string
  bytes(n: number): string
  number(value: number): string
  /** HTML: what stands between backticks is set as code; the rest is escaped. */
  code(text: string): string
  /** HTML: a path that may break behind its slashes. */
  breakable(path: string): string
  /** The words of an op or type: `tag_set` is `tag set`. */
  words(name: string): string
  edgeTypes: readonly string[]
  url: typeof url
}

export const createFormat = (now: number): Format => ({
  ago: (timestamp) => ago(now - Date.parse(timestamp), timestamp),
  time: (timestamp) => timestamp.slice(0, 19).replace('T', ' '),
  short,
  line,
  title: (text, length) => line(text.match(/[\p{L}\p{N}].*/u)?.[0] ?? text, length),
  tame,
  json: (value) => tame(JSON.stringify(value, null, 2)),
  score: (value) => value.toFixed(3),
  size: (characters) =>
    characters < 1000 ? `${characters} characters` : `${(characters / 1000).toFixed(1)}k characters`,
  bytes: (n) => (n < 1000 ? `${n} bytes` : `${(n / 1000).toFixed(1)} kB`),
  number: (value) => value.toLocaleString('en-GB'),
  code: (text) => escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>'),
  breakable: (path) => escapeHtml(path).replaceAll('/', '/<wbr>'),
  words: (name) => name.replaceAll('_', ' '),
  edgeTypes: EDGE_TYPES,
  url,
})

function ago(ms: number, timestamp: string): string {
  if (ms < 5000) return 'just now'
  if (ms < 60_000) return `${Math.floor(ms / 1000)} s ago`
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ago`
  if (ms < 86_400_000) return `${Math.floor(ms / 3_600_000)} h ago`
  return timestamp.slice(0, 10)
}

function short(id: string): string {
  const [, prefix, tail] = /^([a-z]+_)[0-9A-Z]{20}([0-9A-Z]{6})$/.exec(id) ?? []
  return prefix && tail ? `${prefix}…${tail}` : id
}

/** By characters, so that no pair is cut in half. */
function line(text: string, length: number): string {
  const flat = tame(text.slice(0, 4 * length).replace(/\s+/g, ' ')).trim()
  const characters = [...flat]
  return characters.length > length ? `${characters.slice(0, length).join('').trimEnd()}…` : flat
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '')

type Query = Readonly<Record<string, string | number | undefined>>

/** A path with its query; what is undefined or empty is left out. */
export function url(path: string, query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '')
  const search = new URLSearchParams(Object.fromEntries(given.map(([name, value]) => [name, String(value)]))).toString()
  return search === '' ? path : `${path}?${search}`
}

/** Paths of the console. */
export const paths = {
  workspace: (ws: string, tab?: string): string => url(`/ui/workspaces/${encodeURIComponent(ws)}`, { tab }),
  recall: (ws: string, query: Query): string => url(`/ui/workspaces/${encodeURIComponent(ws)}`, query),
  memories: (ws: string): string => `/ui/workspaces/${encodeURIComponent(ws)}/memories`,
  memory: (ws: string, id: string, query: Query = {}): string =>
    url(`/ui/workspaces/${encodeURIComponent(ws)}/memories/${encodeURIComponent(id)}`, query),
  graph: (ws: string, seed?: string): string => url(`/ui/workspaces/${encodeURIComponent(ws)}/graph`, { seed }),
}
