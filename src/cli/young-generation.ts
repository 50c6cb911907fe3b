import { setFlagsFromString } from 'node:v8'

/** What loading leaves behind must not make the young generation grow: an idle server takes 10 MB less. */
export const keepYoungGenerationSmall = (): void => setFlagsFromString('--semi-space-growth-factor=1')

/**
 * Once the program works, a small one costs collections: searches of 10,000 Cells spent
 * a fifth of their time there, an import a third.
 */
export const letYoungGenerationGrow = (): void => setFlagsFromString('--semi-space-growth-factor=2')
