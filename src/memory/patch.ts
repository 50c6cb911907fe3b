import { setImmediate } from 'node:timers/promises'
import { invalidInput, MemoryError } from './errors.ts'
import type { PatchRequest } from './requests.ts'

/** A request is bounded by its body; what repetition makes of a content, in UTF-16 units, by this. */
const CONTENT_MAX = 32 * 1024 * 1024

/** @throws invalid_input 400 when an edit would make the content longer than a store and an answer can carry. */
export function refuseLonger(length: number, field: string): void {
  if (length > CONTENT_MAX) throw invalidInput(`${field} would make the content longer than ${CONTENT_MAX}`, field)
}

/** A long patch lets other requests in this often: one operation on a large content takes up to a second. */
const TURN_MS = 20

/**
 * Runs the operations in order on the running text, all or nothing. Contract: memory.md 3.2 PATCH.
 * @throws patch_anchor_not_found 400 with `index`, `reason` and `matches`; the signal's reason when time is up.
 */
export async function applyPatch(content: string, patch: PatchRequest['patch'], signal: AbortSignal): Promise<string> {
  let text = content
  let turn = performance.now()
  for (const [index, operation] of patch.entries()) {
    if (performance.now() - turn > TURN_MS) {
      await setImmediate()
      signal.throwIfAborted()
      turn = performance.now()
    }
    text = applied(text, operation, index)
  }
  return text
}

function applied(
  text: string,
  { old_string, new_string, replace_all }: PatchRequest['patch'][number],
  index: number,
): string {
  const matches = count(text, old_string)
  if (old_string === '') throw anchorFailure(index, 'empty', 0)
  if (matches === 0) throw anchorFailure(index, 'absent', 0)
  refuseLonger(text.length + (replace_all ? matches : 1) * (new_string.length - old_string.length), 'patch')
  // A fifth of what replaceAll takes where there are millions.
  if (replace_all) return text.split(old_string).join(new_string)
  if (matches > 1) throw anchorFailure(index, 'ambiguous', matches)
  return text.replace(old_string, () => new_string)
}

/** Occurrences as `replaceAll` meets them; an anchor that fits twice only by overlapping is ambiguous all the same. */
function count(text: string, anchor: string): number {
  if (anchor === '') return 0
  let matches = 0
  for (let at = text.indexOf(anchor); at >= 0; at = text.indexOf(anchor, at + anchor.length)) matches++
  return matches === 1 && text.lastIndexOf(anchor) !== text.indexOf(anchor) ? 2 : matches
}

const PROBLEMS = {
  empty: 'is empty',
  absent: 'is not in the content',
  ambiguous: 'is in the content more than once: make it longer, or set replace_all',
} as const

const anchorFailure = (index: number, reason: keyof typeof PROBLEMS, matches: number): MemoryError =>
  new MemoryError('patch_anchor_not_found', `patch.${index}.old_string ${PROBLEMS[reason]}`, {
    index,
    reason,
    matches,
  })
