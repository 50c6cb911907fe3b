import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

function nearestPackage(directory: string): string {
  if (existsSync(join(directory, 'package.json'))) return directory
  const parent = dirname(directory)
  if (parent === directory) throw new Error('mem was moved away from its package.json')
  return nearestPackage(parent)
}

/** The installed package's directory, where migrations/, templates/ and embedded_nodes/ lie; the same from src/ and dist/. */
export const packageRoot = nearestPackage(dirname(fileURLToPath(import.meta.url)))

/** An entry of the build. Threads run these also where the rest runs from source: Node 20 runs no TypeScript. */
export const builtModule = (entry: string): URL => pathToFileURL(join(packageRoot, 'dist', `${entry}.js`))
