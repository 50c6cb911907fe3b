#!/usr/bin/env node
'use strict'
const { existsSync, readFileSync, writeSync } = require('node:fs')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')

const root = join(__dirname, '..')
const program = join(root, 'dist/cli.js')
const words = process.argv.slice(2)

/** The bundles of verbs that must start at once: they load in a few milliseconds. */
const RUNS = { __proto__: null, run: 'quick', validate: 'quick' }
const SERVERS = { __proto__: null, serve: 'quick-server', gateway: 'quick-server', mcp: 'quick-server' }

if (words.length === 1 && (words[0] === '--version' || words[0] === '-V')) {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  writeSync(1, `${version}\n`) // as quick as `node -e 0`: nothing else is loaded
} else if (existsSync(program)) {
  void start()
} else {
  writeSync(2, 'mem is not built yet. Run `npm run build` in its checkout, or `npm start`, which also installs.\n')
  process.exitCode = 4
}

async function start() {
  // A reader that went away (`mem list | head -1`) is no failure.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', ({ code, message }) => {
      if (code === 'EPIPE') process.exit()
      if (stream === process.stderr) return // there is nowhere to tell it
      process.stderr.write(`error: cannot write to standard output: ${message}\n`)
      process.exit(4)
    })
  }
  const [verb, next = '-'] = words
  const isOther = !next.startsWith('-') // `mem gateway keys`, `mem mcp install`
  const quick = RUNS[verb] ?? (isOther ? undefined : SERVERS[verb])
  const code = quick ? await require('./quick.js').loadQuick(quick).runQuick(words, process) : undefined
  if (code === undefined) await import(pathToFileURL(program).href)
  else process.exitCode = code
}
