import { md5 } from '../../base/hash.ts'
import { pairNearest } from './nearest.ts'

/** What a new version takes over from the old Cells. */
export interface CellPlan {
  /** Old Cells whose text is still there: they keep id, vector, writer and time under their new `seq`. */
  kept: { cellId: string; from: number; to: number }[]
  /** New texts, to be written and embedded. */
  added: { text: string; md5: string; seq: number }[]
  /** Ids of the old Cells that vanish with their vectors. */
  removed: string[]
}

/**
 * Matches the new Cell texts (in `seq` order) to the old Cells by text hash, each old Cell once, nearest `seq` first.
 * `kept.length` is what an edit reports as skipped, `added.length` as embedded anew. Contract: memory.md 5.
 */
export function planCells(
  old: readonly { cellId: string; textMd5: string; seq: number }[],
  texts: readonly string[],
): CellPlan {
  const hashes = texts.map(md5)
  const places = new Map<string, { old: number[]; new: number[] }>()
  const placesOf = (hash: string): { old: number[]; new: number[] } => {
    const known = places.get(hash) ?? { old: [], new: [] }
    places.set(hash, known)
    return known
  }
  const bySeq = new Map(old.map((cell) => [cell.seq, cell]))
  for (const { textMd5, seq } of old) placesOf(textMd5).old.push(seq)
  for (const [seq, hash] of hashes.entries()) placesOf(hash).new.push(seq)

  const origin = new Map<number, number>()
  for (const place of places.values()) {
    for (const [from, to] of pairNearest(place.old, place.new)) origin.set(to, from)
  }

  const plan: CellPlan = { kept: [], added: [], removed: [] }
  for (const [seq, text] of texts.entries()) {
    const from = origin.get(seq)
    const cell = from === undefined ? undefined : bySeq.get(from)
    if (cell) {
      plan.kept.push({ cellId: cell.cellId, from: cell.seq, to: seq })
      bySeq.delete(cell.seq)
    } else {
      plan.added.push({ text, md5: hashes[seq] ?? md5(text), seq })
    }
  }
  plan.removed = [...bySeq.values()].map(({ cellId }) => cellId)
  return plan
}
