import { randomBytes } from 'node:crypto'
import { realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'

/** Indented JSON, numbers with 15 significant digits. Contract: runbook.md 3.1. */
export const reportText = (value: unknown): string => JSON.stringify(value, fifteenDigits, 2)

/** A value as plain JSON data, for other formats. */
export const reportData = (value: unknown): unknown => JSON.parse(JSON.stringify(value, fifteenDigits))

const fifteenDigits = (_: string, value: unknown): unknown =>
  typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(15)) : value

/** Writes a file whole or not at all, readable by its owner only. Contract: runbook.md 10. */
export function writeWhole(path: string, text: string): void {
  const existing = statSync(path, { throwIfNoEntry: false })
  // a pipe or a device, such as /dev/stdout, stays what it is
  if (existing && !existing.isFile()) return writeFileSync(path, text)
  const target = existing ? realpathSync(path) : path
  const draft = `${target}.${randomBytes(4).toString('hex')}`
  try {
    writeFileSync(draft, text, { mode: 0o600, flag: 'wx' })
    renameSync(draft, target)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
}
