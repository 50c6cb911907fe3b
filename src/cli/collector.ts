import { availableParallelism } from 'node:os'
import { setFlagsFromString } from 'node:v8'

/**
 * What loading leaves behind must not make the young generation grow: an idle server takes 10 MB less. And where there is one
 * processor, old objects are marked in steps of the program's own: threads that mark beside it would take turns with it. To be
 * called before anything is marked; V8 does not live through the same flag of parallel marking.
 */
export function prepareCollector(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
  if (availableParallelism() === 1) setFlagsFromString('--no-concurrent-marking')
}

/**
 * Once the program works, a small one costs collections: searches of 10,000 Cells spent
 * a fifth of their time there, an import a third.
 */
export const letYoungGenerationGrow = (): void => setFlagsFromString('--semi-space-growth-factor=2')
