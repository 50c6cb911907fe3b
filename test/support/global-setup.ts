import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { TestProject } from 'vitest/node'
import { freePort } from './ports.ts'
import { findBinaries, findRunner, readableBinaries } from './postgres-binaries.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** A real PostgreSQL for the whole run; empty when npm has none for this machine. */
    postgresUrl: string
  }
}

/**
 * Starts PostgreSQL, keeps it until the input ends, then removes it. The input is a pipe from the test run, so it ends
 * however the run ends, Ctrl-C and `kill -9` included. The ICU collation is what most real servers have: a query that
 * needs the order of bytes must say so.
 */
const KEEPER = `
fail() { cat "$2/log" >&2; rm -rf "$2"; exit 1; }
"$1/bin/initdb" -D "$2/data" -U postgres -A trust -E UTF8 --locale=C --locale-provider=icu --icu-locale=en-US \\
  --no-sync >"$2/log" 2>&1 || fail "$@"
"$1/bin/postgres" -D "$2/data" -p "$3" -h 127.0.0.1 -k '' -F \\
  -c full_page_writes=off -c synchronous_commit=off -c max_connections=200 >>"$2/log" 2>&1 &
until grep -qs ready "$2/data/postmaster.pid"; do
  kill -0 $! || fail "$@"
  sleep 0.02
done
echo ready
exec >&- 2>&-
while read -r _; do :; done
kill -QUIT $!
wait
rm -rf "$2"
`

/** One PostgreSQL for the whole run, which tests ask for with `inject('postgresUrl')`. */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const native = findBinaries()
  if (native === undefined) {
    console.warn(`npm has no PostgreSQL for ${process.platform}-${process.arch}: tests on PostgreSQL are skipped`)
    project.provide('postgresUrl', '')
    return undefined
  }
  const runner = findRunner()
  const directory = mkdtempSync(join(tmpdir(), 'mem-test-postgres-'))
  if (runner.uid !== undefined && runner.gid !== undefined) chownSync(directory, runner.uid, runner.gid)
  const port = await freePort()
  const binaries = readableBinaries(native, directory, runner)
  const keeper = spawn('/bin/sh', ['-c', KEEPER, 'sh', binaries, directory, String(port)], {
    ...runner,
    cwd: directory,
    detached: true,
    env: { PATH: process.env['PATH'], LC_ALL: 'C' },
  })
  const ended = once(keeper, 'exit')
  const [output, errors] = await Promise.all([text(keeper.stdout), text(keeper.stderr)])
  const stop = async (): Promise<void> => {
    keeper.stdin.end()
    await ended
  }
  if (output.trim() !== 'ready') throw new Error(`PostgreSQL did not start:\n${errors}`)
  project.provide('postgresUrl', `postgres://postgres@127.0.0.1:${port}/postgres`)
  return stop
}
