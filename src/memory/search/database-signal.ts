import type { CellTable, MemoryEntry } from './cell-table.ts'
import { listed } from './memory-list.ts'
import type { Signal } from './signals.ts'
import type { ScoredCell, VectorSearch } from './types.ts'

/** Up to so many Cells are compared one by one, exactly: some 20 ms. Above, the database walks its index. */
const COMPARED = 5_000

interface Scored {
  slot: number
  cosine: number
}

/**
 * Cosines that a database finds. `mask` is applied here where it lets many Cells pass, and there, as their list, where it
 * lets few. The list holds the `depth` best Cells and at least `memories` Memories where there are so many, as of `vectorSignal`.
 * @param embedded by slot: 1 where a vector is
 */
export async function databaseSignal(
  table: CellTable,
  database: VectorSearch,
  query: Float32Array,
  {
    mask,
    embedded,
    depth,
    memories,
  }: { mask: Uint8Array | undefined; embedded: Uint8Array; depth: number; memories: number },
): Promise<Signal> {
  const allowed = (slot: number): boolean => embedded[slot] === 1 && (!mask || mask[slot] === 1)
  let count = 0
  for (let slot = 0; slot < table.slots; slot++) if (allowed(slot)) count++
  const all = (): number[] => Array.from({ length: table.slots }, (_, slot) => slot).filter(allowed)
  const cellNosOf = (slots: readonly number[]): number[] => slots.map((slot) => table.at(slot).cellNo)
  /** The index may be behind the database: what it does not know is no candidate. */
  const known = (cells: readonly ScoredCell[]): Scored[] =>
    cells.flatMap(({ cellNo, cosine }) => {
      const slot = table.cell(cellNo)?.slot
      return slot !== undefined && allowed(slot) ? [{ slot, cosine }] : []
    })
  const exactly = async (n: number): Promise<Scored[]> => known(await database.compare(query, cellNosOf(all()), n))
  const nearly = async (n: number): Promise<Scored[]> => {
    for (let limit = Math.ceil((n * table.size) / count); ; limit *= 4) {
      const cells = await database.nearest(query, limit)
      const found = known(cells)
      if (found.length >= n) return found.slice(0, n)
      if (cells.length < limit) return found.length === count ? found : exactly(n)
    }
  }
  const top = count <= COMPARED ? exactly : nearly
  let best = count === 0 || isZero(query) ? [] : await top(depth)
  for (let n = depth; best.length === n && list(table, best).numbers.length < memories;) best = await top((n *= 4))

  const cosines = new Map(best.map(({ slot, cosine }) => [slot, cosine]))
  return {
    list: list(table, best),
    rest: Infinity,
    scoresAt: (asked) => Float32Array.from(asked, (slot) => cosines.get(slot) ?? -Infinity),
    gather: async (some: readonly MemoryEntry[]) => {
      const wanted = some
        .flatMap(({ cells }) => cells.map(({ slot }) => slot))
        .filter((slot) => allowed(slot) && !cosines.has(slot))
      if (wanted.length === 0 || best.length === 0) return
      const cells = await database.compare(query, cellNosOf(wanted.slice(0, COMPARED)))
      for (const { slot, cosine } of known(cells)) cosines.set(slot, cosine)
    },
  }
}

const isZero = (vector: Float32Array): boolean => vector.every((value) => value === 0)

const list = (table: CellTable, scored: readonly Scored[]): Signal['list'] =>
  listed(
    table,
    Uint32Array.from(scored, ({ slot }) => slot),
    Float32Array.from(scored, ({ cosine }) => cosine),
  )
