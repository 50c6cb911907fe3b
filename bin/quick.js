'use strict'
const { readFileSync } = require('node:fs')
const { createRequire } = require('node:module')
const { join } = require('node:path')
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

/** Runs CommonJS source; the compiler's cache is ignored where another Node made it. */
function compile(name, source, cachedData) {
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
