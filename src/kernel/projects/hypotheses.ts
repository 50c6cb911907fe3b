import { canonicalJson } from '../../base/canonical-json.ts'
import type { Project } from '../model/project.ts'

type Hypotheses = Project['hypotheses']

/** With the time of the last change: where none is given that of before, if nothing else of it changed. Contract: kernel-1.md 4 */
export const withTimes = (given: Hypotheses, at: string, before: Hypotheses = []): Hypotheses =>
  given.map((hypothesis) => {
    const same = before.find((old) => canonicalJson({ ...old, ...hypothesis }) === canonicalJson(old))
    return { updatedAt: same?.updatedAt ?? at, ...hypothesis }
  })
