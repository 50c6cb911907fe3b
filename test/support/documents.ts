import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '../../src/base/package-root.ts'

/** The commands of a document's tour, as a reader copies them. */
export const tourOf = (document: string): string =>
  [...readFileSync(join(packageRoot, document), 'utf8').matchAll(/^```sh tour\n(.*?)^```$/gms)]
    .map(([, block]) => block)
    .join('\n')
