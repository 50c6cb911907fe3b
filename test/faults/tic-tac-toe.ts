import type { Envelope } from '../../src/kernel/model/envelope.ts'

/** A game of three: a referee who asks two players for their moves, and delivers the board. What models answer. */

export type Mark = 'X' | 'O'
export interface Move {
  mark: Mark
  cell: number
}

const LINES = ['012', '345', '678', '036', '147', '258', '048', '246']
export const PLAYERS = { X: 'cross', O: 'nought' } as const
/** What each would like best; the first wish of nought is taken when it comes to it. */
const WISHES: Record<Mark, number[]> = { X: [4, 2, 6, 0, 8], O: [4, 0, 1, 3, 5] }

const markOf = (moves: readonly Move[]): Mark => (moves.length % 2 === 0 ? 'X' : 'O')

/** The board after these moves, row by row. @throws Error for a move against the rules */
export function boardOf(moves: readonly Move[]): string {
  const board = Array.from({ length: 9 }, () => '.')
  for (const [i, { mark, cell }] of moves.entries()) {
    if (winnerOf(board.join('')) || mark !== markOf(moves.slice(0, i)) || board[cell] !== '.') {
      throw new Error(`move ${i + 1} is against the rules: ${mark} to ${cell} on ${board.join('')}`)
    }
    board[cell] = mark
  }
  return board.join('')
}

export const winnerOf = (board: string): Mark | undefined =>
  (['X', 'O'] as const).find((mark) => LINES.some((line) => [...line].every((cell) => board[Number(cell)] === mark)))

const isLegal = (moves: readonly Move[], move: Move): boolean => boardOf(moves)[move.cell] === '.'

type Outcome = Record<string, unknown>
type Position = { moves: Move[]; refused: number[] }

/** One turn of the referee, who keeps the game in the checkpoint. */
export function referee({ checkpoint, results }: Envelope): Outcome {
  let { moves = [], refused = [] }: Partial<Position> = checkpoint
  const last = results.at(-1)
  if (last?.kind === 'action' && last.status === 'succeeded') {
    const board = boardOf(moves)
    return { status: 'completed', output: { board, moves, winner: winnerOf(board), receipt: last['output'] } }
  }
  if (last?.kind === 'request') {
    const move = { mark: markOf(moves), cell: cellOf(last['output']) }
    if (isLegal(moves, move)) [moves, refused] = [[...moves, move], []]
    else refused = [...refused, move.cell]
  }
  const position = { moves, refused }
  const board = boardOf(moves)
  const winner = winnerOf(board)
  if (winner || !board.includes('.')) {
    const action = {
      bindingId: 'press',
      action: 'publish',
      arguments: { board, moves, winner },
      summary: `${winner} won`,
    }
    return { checkpoint: position, action }
  }
  const mark = markOf(moves)
  const delegation = {
    kind: 'request',
    recipient: { type: 'agent', id: PLAYERS[mark] },
    goal: `Move ${moves.length + 1}, try ${refused.length + 1}`,
    sharedContext: { mark, board, refused },
  }
  return { checkpoint: position, delegation }
}

const cellOf = (output: unknown): number =>
  output !== null && typeof output === 'object' && 'cell' in output ? Number(output.cell) : -1

interface Asked {
  request: { sharedContext: { mark: Mark; board: string; refused: number[] } }
}

/** One turn of a player: takes each request on, and moves where nobody told that it cannot. */
export function player({ run, context }: Envelope & { context: Partial<Asked> }): Outcome {
  if (run.source === 'agent_request_decision') return { status: 'completed', output: { decision: 'accept' } }
  const { mark, board, refused } = context.request?.sharedContext ?? { mark: 'X', board: '', refused: [] }
  // A careless one: looks at the board only after a refusal.
  const isFree = (cell: number): boolean => !refused.includes(cell) && (refused.length === 0 || board[cell] === '.')
  const own = WISHES[mark].filter((cell) => board[cell] !== mark)
  return { status: 'completed', output: { cell: own.find(isFree) ?? -1 } }
}
