import { MemoryError } from './errors.ts'
import type { PatchRequest } from './requests.ts'

/**
 * Runs the operations in order on the running text, all or nothing. Contract: memory.md 3.2 PATCH.
 * @throws patch_anchor_not_found 400 with `index`, `reason` and `matches`.
 */
export function applyPatch(content: string, patch: PatchRequest['patch']): string {
  return patch.reduce((text, { old_string, new_string, replace_all }, index) => {
    const matches = count(text, old_string)
    if (old_string === '') throw anchorFailure(index, 'empty', 0)
    if (matches === 0) throw anchorFailure(index, 'absent', 0)
    if (replace_all) return text.replaceAll(old_string, () => new_string)
    if (matches > 1) throw anchorFailure(index, 'ambiguous', matches)
    return text.replace(old_string, () => new_string)
  }, content)
}

/** Occurrences, overlapping ones included: an anchor that fits twice is ambiguous. */
function count(text: string, anchor: string): number {
  if (anchor === '') return 0
  let matches = 0
  for (let at = text.indexOf(anchor); at >= 0; at = text.indexOf(anchor, at + 1)) matches++
  return matches
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
