import type { Change } from '../change.ts'
import { conflict } from '../errors.ts'
import type { Intervention, Run } from '../model/run.ts'

const MOST = 100

/** The run with what its next turn is told by a person. @throws conflict when there is too much that no turn has seen yet */
export function withGuidance({ context, by, at }: Change, run: Run, instruction: string, id = context.newId()): Run {
  if (run.pendingInterventions.length >= MOST) throw conflict(`${MOST} instructions wait for the next turn already`)
  const guidance: Intervention = { id, actor: by.actor, instruction, createdAt: at }
  return { ...run, pendingInterventions: [...run.pendingInterventions, guidance] }
}
