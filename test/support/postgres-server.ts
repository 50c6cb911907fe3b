import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { freePort } from './ports.ts'
import { findBinaries, findRunner, readableBinaries } from './postgres-binaries.ts'

/**
 * Starts PostgreSQL, keeps it until the input ends, then removes it. The input is a pipe from whoever needs it, so it ends
 * however that ends, Ctrl-C and `kill -9` included. The ICU collation is what most real servers have: a query that
 * needs the order of bytes must say so.
 */
const KEEPER = `
directory=$2 port=$3 native=$1
shift 3
fail() { cat "$directory/log" >&2; rm -rf "$directory"; exit 1; }
"$native/bin/initdb" -D "$directory/data" -U postgres -A trust -E UTF8 --locale=C --locale-provider=icu --icu-locale=en-US \\
  --no-sync >"$directory/log" 2>&1 || fail
"$native/bin/postgres" -D "$directory/data" -p "$port" -h 127.0.0.1 -k '' -c max_connections=200 "$@" >>"$directory/log" 2>&1 &
until grep -qs ready "$directory/data/postmaster.pid"; do
  kill -0 $! || fail
  sleep 0.02
done
echo ready
exec >&- 2>&-
while read -r _; do :; done
kill -QUIT $!
wait
rm -rf "$directory"
`

export interface PostgresServer {
  url: string
  stop(): Promise<void>
}

/** An empty PostgreSQL; undefined where npm has none for this machine. @param settings as `-c name=value` */
export async function startPostgres(settings: readonly string[]): Promise<PostgresServer | undefined> {
  const native = findBinaries()
  if (native === undefined) return undefined
  const runner = findRunner()
  const directory = mkdtempSync(join(tmpdir(), 'mem-test-postgres-'))
  if (runner.uid !== undefined && runner.gid !== undefined) chownSync(directory, runner.uid, runner.gid)
  const port = await freePort()
  const binaries = readableBinaries(native, directory, runner)
  const args = [binaries, directory, String(port), ...settings.flatMap((setting) => ['-c', setting])]
  const keeper = spawn('/bin/sh', ['-c', KEEPER, 'sh', ...args], {
    ...runner,
    cwd: directory,
    detached: true,
    env: { PATH: process.env['PATH'], LC_ALL: 'C' },
  })
  const ended = once(keeper, 'exit')
  const [output, errors] = await Promise.all([text(keeper.stdout), text(keeper.stderr)])
  if (output.trim() !== 'ready') throw new Error(`PostgreSQL did not start:\n${errors}`)
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    stop: async () => {
      keeper.stdin.end()
      await ended
    },
  }
}
