import { words } from './analysis.ts'
import { detached } from './detached.ts'

/**
 * Who speaks in a text that begins like a turn of a conversation: up to three words and a colon, as in `Ada Lovelace: yes`.
 * In lower case; undefined where a text begins otherwise.
 */
export function speakerOf(text: string): string | undefined {
  const name = words(SPEAKER.exec(text)?.[1] ?? '')
  return name.length > 0 && name.length <= 3 ? detached(name.join(' ')) : undefined
}

/** Tells whether a query asks for what a speaker said: it names them, or says `I` or `my` and they are the user. */
export function speakersAskedFor(query: string): (speaker: string) => boolean {
  const asked = new Set(words(query))
  const users = FIRST_PERSON.some((word) => asked.has(word)) ? USERS : NOBODY
  return (speaker) => users.has(speaker) || speaker.split(' ').some((word) => asked.has(word))
}

const SPEAKER = /^\s*(\p{L}[\p{L}\p{M}\p{N} ._'-]{0,40}):\s/u
const FIRST_PERSON = ['i', 'me', 'my', 'mine', 'myself', 'we', 'us', 'our', 'ours']
const USERS: ReadonlySet<string> = new Set(['user', 'human'])
const NOBODY: ReadonlySet<string> = new Set()
