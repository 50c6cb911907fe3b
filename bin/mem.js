#!/usr/bin/env node
import { existsSync, readFileSync, writeSync } from 'node:fs'

const program = new URL('../dist/cli.js', import.meta.url)
if (process.argv.length === 3 && (process.argv[2] === '--version' || process.argv[2] === '-V')) {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  writeSync(1, `${version}\n`) // as quick as `node -e 0`: nothing else is loaded
} else if (existsSync(program)) {
  await import(program.href)
} else {
  writeSync(2, 'mem is not built yet. Run `npm run build` in its checkout, or `npm start`, which also installs.\n')
  process.exitCode = 4
}
