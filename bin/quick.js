'use strict'
const { readFileSync } = require('node:fs')
const { createRequire } = require('node:module')
const { join } = require('node:path')
const { setFlagsFromString } = require('node:v8')
const { Script } = require('node:vm')

const dist = join(__dirname, '../dist')
/** A program's source behind what the compiler kept of it, so that the two can't be of different builds. */
const bundleOf = (name) => join(dist, `${name}.bundle`)

/** A program of few verbs: `runQuick(words, io)` gives an exit code, or undefined for what is not plain. */
function loadQuick(name) {
  const bytes = readFileSync(bundleOf(name))
  const start = 4 + bytes.readUInt32LE(0)
  return compile(name, bytes.latin1Slice(start), bytes.subarray(4, start)).exports
}

/**
 * A server that rests for less than five minutes gives nothing back: behind 8 s, which V8 waits by itself, calls that come after
 * half a minute took 12 % more processor time, for young objects and compiled code had to find their place again. Node 20 takes
 * this before its first collection alone.
 */
const REST = '--gc-memory-reducer-start-delay-ms=300000'

/**
 * Servers may be started with more room for young objects (docs/run-as-a-service.md), which V8 has taken by now. Told that it was
 * not, it goes on with what was compiled without that flag: the start takes 230 ms, and 360 when all is compiled anew.
 */
const ROOM = '--max-semi-space-size=0'

/** Runs CommonJS source; the compiler's cache is ignored where another Node made it, or one of other flags. */
function compile(name, source, cachedData) {
  if (name === 'quick-server') for (const flag of [REST, ROOM]) setFlagsFromString(flag)
  const filename = join(dist, `${name}.cjs`)
  const script = new Script(`(function (exports, require, module, __filename) {${source}\n})`, {
    filename,
    ...(cachedData && { cachedData }),
  })
  const module = { exports: {} }
  script.runInThisContext()(module.exports, createRequire(filename), module, filename)
  return { script, exports: module.exports }
}

module.exports = { bundleOf, compile, loadQuick }
