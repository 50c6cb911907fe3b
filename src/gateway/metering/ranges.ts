import { DAY, HOUR, MINUTE, type Span } from '../store/aggregates.ts'

/** A part of a range that aggregates of one span cover. */
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

/** Widens a range to what aggregates can tell apart: minutes, further back hours, then days. */
export const alignRange = (from: number, to: number, now: number): { from: number; to: number } => ({
  from: floor(from, finestAt(from, now)),
  to: ceil(to, finestAt(to, now)),
})

/** The pieces of an aligned range, in its order: as coarse as can be, but no coarser than told. */
export function piecesOf(from: number, to: number, coarsest: Span): Piece[] {
  if (from >= to) return []
  const finer = coarsest === DAY ? HOUR : MINUTE
  const [first, last] = [ceil(from, coarsest), floor(to, coarsest)]
  if (coarsest === MINUTE) return [{ span: MINUTE, from, to }]
  if (first >= last) return piecesOf(from, to, finer)
  return [...piecesOf(from, first, finer), { span: coarsest, from: first, to: last }, ...piecesOf(last, to, finer)]
}

const finestAt = (time: number, now: number): Span =>
  time >= keptFrom(MINUTE, now) ? MINUTE : time >= keptFrom(HOUR, now) ? HOUR : DAY

export const floor = (time: number, span: Span): number => Math.floor(time / span) * span
const ceil = (time: number, span: Span): number => Math.ceil(time / span) * span
