import { LimitError } from './errors.ts'
import { isList, ValueSet, type Value } from './values.ts'

/** Bounds of one evaluation. Contract: runbook.md 3.3. */
export interface Limits {
  steps: number
  /** Bytes of the result: its texts, and eight for every value. */
  resultBytes: number
}

export const LIMITS: Limits = { steps: 1_000_000, resultBytes: 16 * 1024 * 1024 }

/** Counts down the steps of one evaluation. */
export class Budget {
  readonly limits: Limits
  private left: number

  constructor(limits: Limits = LIMITS) {
    this.limits = limits
    this.left = limits.steps
  }

  /** @throws LimitError when the steps are used up */
  spend(steps: number): void {
    this.left -= steps
    if (this.left < 0) throw new LimitError(`more than ${this.limits.steps} steps`)
  }

  /** Text of this length is about to be made. */
  text(length: number): void {
    if (length > this.limits.resultBytes) throw new LimitError(`text larger than ${this.limits.resultBytes} bytes`)
    this.spend(length / 64)
  }

  /** @throws LimitError when the value is larger than a result may be */
  checkSize(value: Value): void {
    let left = this.limits.resultBytes
    const visit = (part: Value): void => {
      left -= 8
      if (typeof part === 'string') left -= part.length > left / 3 ? Buffer.byteLength(part) : part.length
      if (left < 0) throw new LimitError(`result larger than ${this.limits.resultBytes} bytes`)
      if (typeof part !== 'object' || part === null) return
      if (part instanceof ValueSet) part.items.forEach(visit)
      else if (isList(part)) part.forEach(visit)
      else {
        for (const key in part) {
          left -= key.length
          visit(part[key] ?? null)
        }
      }
    }
    if (typeof value === 'string' || (typeof value === 'object' && value !== null)) visit(value)
  }
}
