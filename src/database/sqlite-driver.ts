import { createRequire } from 'node:module'
import type Sqlite from 'better-sqlite3'

const [major = 0] = process.versions.node.split('.').map(Number)

/**
 * The driver of SQLite for this Node. Version 12 aborts Node 24 while it collects garbage, version 13 ends Node 20 with a
 * segmentation fault; npm installs 13 only where it runs (scripts/setup.mjs looks for the same).
 */
export const SqliteDriver: typeof Sqlite = createRequire(import.meta.url)(
  major >= 22 ? 'better-sqlite3-13' : 'better-sqlite3',
)
