import type { FunctionDefinition } from './arguments.ts'
import { COLLECTION_FUNCTIONS } from './collection.ts'
import { CONVERSION_FUNCTIONS } from './conversion.ts'
import { ENCODING_FUNCTIONS } from './encoding.ts'
import { FILE_FUNCTIONS } from './file.ts'
import { NUMBER_FUNCTIONS } from './number.ts'
import { SET_FUNCTIONS } from './sets.ts'
import { TEXT_FUNCTIONS } from './text.ts'
import { TIME_FUNCTIONS } from './time.ts'

/** Evaluated by the evaluator itself, since they decide whether their arguments are evaluated. */
const LAZY = {
  try: { min: 1, max: Infinity, call: () => null },
  can: { min: 1, max: 1, call: () => null },
}

/** The closed list of functions. Contract: runbook.md 3.3. */
export const FUNCTIONS: ReadonlyMap<string, FunctionDefinition> = new Map(
  Object.entries({
    ...TEXT_FUNCTIONS,
    ...NUMBER_FUNCTIONS,
    ...COLLECTION_FUNCTIONS,
    ...SET_FUNCTIONS,
    ...ENCODING_FUNCTIONS,
    ...TIME_FUNCTIONS,
    ...CONVERSION_FUNCTIONS,
    ...FILE_FUNCTIONS,
    ...LAZY,
  }),
)
