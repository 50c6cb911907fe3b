// Makes a checkout ready to run: installs when node_modules is not what the lock file says, builds when dist/ is not
// what the sources say, and otherwise does nothing.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sourceHash, STAMP } from './source-hash.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

function requireNode(minimum) {
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major > minimum[0] || (major === minimum[0] && minor >= minimum[1])) return
  fail(`mem needs Node ${minimum.join('.')} or newer; this is ${process.version}. Get one at https://nodejs.org`)
}

function installed() {
  const installedLock = join(root, 'node_modules/.package-lock.json')
  if (!existsSync(installedLock)) return false
  const wanted = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages
  const present = JSON.parse(readFileSync(installedLock, 'utf8')).packages
  const same = Object.entries(wanted).every(([path, { version, optional, devOptional }]) => {
    const found = present[path]
    return path === '' || (found ? found.version === version : Boolean(optional || devOptional))
  })
  return same && sqliteLoads()
}

/** Which of the two drivers runs on which Node: src/database/sqlite-driver.ts. The older one is compiled, for one major. */
const isCompiled = Number(process.versions.node.split('.')[0]) < 22
const SQLITE = isCompiled ? 'better-sqlite3' : 'better-sqlite3-13'

/** In a process of its own: what does not fit may end it, and what was not found is not looked for again. */
function sqliteLoads() {
  const open = `new (require('${SQLITE}'))(':memory:').close()`
  return spawnSync(process.execPath, ['-e', open], { cwd: root, stdio: 'ignore' }).status === 0
}

const stampPath = join(root, STAMP)
const built = () => existsSync(stampPath) && readFileSync(stampPath, 'utf8') === sourceHash(root)

function run(message, command, args) {
  console.log(message)
  const env = { ...ownHeaders(), ...process.env }
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit', env })
  if (error || status !== 0) fail(`${[command, ...args].join(' ')} failed${error ? `: ${error.message}` : ''}`)
}

/** Run by npm, its own path is known; that also spares Windows a shell. */
function npm(message, args) {
  const path = process.env.npm_execpath
  const words = [...args, '--loglevel=error']
  run(message, path ? process.execPath : 'npm', path ? [path, ...words] : words)
}

/** Native code compiles against the headers that came with this Node, where it has them, instead of downloading some. */
function ownHeaders() {
  const prefix = dirname(dirname(process.execPath))
  return existsSync(join(prefix, 'include/node/node.h')) ? { npm_config_nodedir: prefix } : {}
}

function fail(message) {
  console.error(message)
  process.exit(1)
}

requireNode([20, 19])
if (!installed()) {
  npm('Installing dependencies (a minute or two, once) ...', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'])
  // npm would compile the newer driver too, which is no script of its own: https://github.com/npm/cli/pull/9859
  const { allowScripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const packages = Object.keys(allowScripts).filter((name) => isCompiled || name !== 'better-sqlite3')
  npm(isCompiled ? 'Compiling SQLite ...' : 'Running install scripts ...', ['rebuild', ...packages])
  if (!sqliteLoads()) {
    fail(
      isCompiled
        ? 'SQLite could not be compiled: that takes python3, make and a C++ compiler. With Node 22 or newer it need not be.'
        : `SQLite could not be loaded: there is none for ${process.platform} on ${process.arch}.`,
    )
  }
}
if (!built()) run('Building ...', process.execPath, [join(root, 'scripts/build.mjs')])
