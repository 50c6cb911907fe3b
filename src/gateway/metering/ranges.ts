import { DAY, HOUR, MINUTE, type Span } from '../store/aggregates.ts'

/** The span of what no aggregate tells apart: there the records are read. */
export const RECORD = 1

/** A part of a range that aggregates of one span cover, or records. */
export interface Piece {
  span: Span
  from: number
  /** Not included. */
  to: number
}

/** From when on aggregates of a span are there; by whole spans of the next. Contract: gateway.md 2.8. */
export function keptFrom(span: Span, now: number): number {
  if (span === MINUTE) return ceil(now - 7 * DAY, HOUR)
  return span === HOUR ? ceil(now - 400 * DAY, DAY) : 0
}

/**
 * Widens a range to what can be told apart: within the last day, of which all records are kept, nothing need be, further back
 * minutes, then hours, then days. Its end may as well be that of a minute when nothing has happened since.
 */
export const alignRange = (from: number, to: number, now: number): { from: number; to: number } => ({
  from: floor(from, finestAt(from, now)),
  to: ceil(to, to >= now ? MINUTE : finestAt(to, now)),
})

/** The pieces of an aligned range, in its order: as coarse as can be, but no coarser than told. */
export function piecesOf(from: number, to: number, coarsest: Span): Piece[] {
  if (from >= to) return []
  if (coarsest === RECORD) return [{ span: RECORD, from, to }]
  const finer = coarsest === DAY ? HOUR : coarsest === HOUR ? MINUTE : RECORD
  const [first, last] = [ceil(from, coarsest), floor(to, coarsest)]
  if (first >= last) return piecesOf(from, to, finer)
  return [...piecesOf(from, first, finer), { span: coarsest, from: first, to: last }, ...piecesOf(last, to, finer)]
}

function finestAt(time: number, now: number): Span {
  if (time > now - DAY) return RECORD
  return time >= keptFrom(MINUTE, now) ? MINUTE : time >= keptFrom(HOUR, now) ? HOUR : DAY
}

export const floor = (time: number, span: Span): number => Math.floor(time / span) * span
const ceil = (time: number, span: Span): number => Math.ceil(time / span) * span
