'use strict'
const { readFileSync } = require('node:fs')
const { createRequire } = require('node:module')
const { join } = require('node:path')
const { Script } = require('node:vm')

const dist = join(__dirname, '../dist')
/** The bundle's source behind what the compiler kept of it, so that the two can't be of different builds. */
const bundle = join(dist, 'quick.bundle')

/** The program of the frequent verbs: `runQuick(words, io)` gives an exit code, or undefined for what is not plain. */
function loadQuick() {
  const bytes = readFileSync(bundle)
  const start = 4 + bytes.readUInt32LE(0)
  return compile(bytes.latin1Slice(start), bytes.subarray(4, start)).exports
}

/** Runs CommonJS source; the compiler's cache is ignored where another Node made it. */
function compile(source, cachedData) {
  const filename = join(dist, 'quick.cjs')
  const script = new Script(`(function (exports, require, module, __filename) {${source}\n})`, {
    filename,
    ...(cachedData && { cachedData }),
  })
  const module = { exports: {} }
  script.runInThisContext()(module.exports, createRequire(filename), module, filename)
  return { script, exports: module.exports }
}

module.exports = { bundle, compile, loadQuick }
