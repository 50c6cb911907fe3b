// What a build depends on, as one hash: the same text gives the same hash on any machine and after any checkout, under
// the same Node (a build holds compiled code).
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const STAMP = 'dist/.source-hash'

export function sourceHash(root) {
  const sources = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
  const others = [
    'package.json',
    'package-lock.json',
    'tsconfig.json',
    'tsconfig.build.json',
    'scripts/build.mjs',
    'scripts/build-quick.mjs',
    'bin/quick.js',
  ]
  const hash = createHash('sha256').update(process.version)
  for (const file of [...sources, ...others.map((name) => join(root, name))]) {
    hash.update(file.slice(root.length)).update('\0').update(readFileSync(file)).update('\0')
  }
  return hash.digest('hex')
}
