import { invalidInput, MemoryError } from './errors.ts'
import type { PatchRequest } from './requests.ts'

/** A request is bounded by its body; what repetition makes of a content, in UTF-16 units, by this. */
const CONTENT_MAX = 32 * 1024 * 1024

/** @throws invalid_input 400 when an edit would make the content longer than a store and an answer can carry. */
export function refuseLonger(length: number, field: string): void {
  if (length > CONTENT_MAX) throw invalidInput(`${field} would make the content longer than ${CONTENT_MAX}`, field)
}

/**
 * Runs the operations in order on the running text, all or nothing. Contract: memory.md 3.2 PATCH.
 * @throws patch_anchor_not_found 400 with `index`, `reason` and `matches`.
 */
export function applyPatch(content: string, patch: PatchRequest['patch']): string {
  return patch.reduce((text, { old_string, new_string, replace_all }, index) => {
    const matches = count(text, old_string)
    if (old_string === '') throw anchorFailure(index, 'empty', 0)
    if (matches === 0) throw anchorFailure(index, 'absent', 0)
    refuseLonger(text.length + (replace_all ? matches : 1) * (new_string.length - old_string.length), 'patch')
    if (replace_all) return text.replaceAll(old_string, () => new_string)
    if (matches > 1) throw anchorFailure(index, 'ambiguous', matches)
    return text.replace(old_string, () => new_string)
  }, content)
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
  new MemoryError('patch_anchor_not_found', `old_string of operation ${index} ${PROBLEMS[reason]}`, {
    index,
    reason,
    matches,
  })
