import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '../../src/base/package-root.ts'

/** Installs packages to compare with beside the project at first use, and gives the directory they are in. */
export function peerPackages(set: string, packages: readonly string[]): string {
  const directory = join(packageRoot, 'node_modules/.cache/bench-peers', set)
  const modules = join(directory, 'node_modules')
  if (packages.every((name) => existsSync(join(modules, name)))) return modules
  console.log(`Installing ${packages.join(', ')} into ${directory}`)
  // With --legacy-peer-deps a package takes what this project has; scripts would fetch or compile what nobody runs here.
  const flags = ['--no-save', '--no-audit', '--no-fund', '--legacy-peer-deps', '--ignore-scripts']
  const { status } = spawnSync('npm', ['install', '--prefix', directory, ...flags, ...packages], { stdio: 'inherit' })
  if (status !== 0) throw new Error('npm could not install the peers')
  return modules
}
