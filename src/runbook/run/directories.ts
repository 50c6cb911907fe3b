import { existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { lockOwner } from './journal.ts'

/** Removes all but the newest `keep` run directories; those in use stay. Contract: runbook.md 9. */
export function pruneRuns(stateDirectory: string, keep: number): void {
  if (!existsSync(stateDirectory)) return
  const runs = readdirSync(stateDirectory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(stateDirectory, name))
    .flatMap((directory) => {
      const journal = statSync(join(directory, 'journal.jsonl'), { throwIfNoEntry: false })
      return journal ? [{ directory, time: journal.mtimeMs }] : []
    })
    .sort((a, b) => b.time - a.time)
  for (const { directory } of runs.slice(keep)) {
    if (lockOwner(join(directory, 'lock')) === undefined) rmSync(directory, { recursive: true, force: true })
  }
}
