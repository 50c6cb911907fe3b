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
  return same && nativeModuleLoads()
}

/** False as well after a change of the Node major, for which it has to be compiled again. */
function nativeModuleLoads() {
  try {
    process.dlopen({ exports: {} }, join(root, 'node_modules/better-sqlite3/build/Release/better_sqlite3.node'))
    return true
  } catch {
    return false
  }
}

const stampPath = join(root, STAMP)
const built = () => existsSync(stampPath) && readFileSync(stampPath, 'utf8') === sourceHash(root)

function run(message, command, args) {
  console.log(message)
  const env = { ...ownHeaders(), ...process.env }
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit', env })
  if (error || status !== 0) fail(`${[command, ...args].join(' ')} failed${error ? `: ${error.message}` : ''}`)
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
  // Run by npm, its own path is known; that also spares Windows a shell.
  const npm = process.env.npm_execpath
  const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error']
  run(
    'Installing dependencies (a minute or two, once) ...',
    npm ? process.execPath : 'npm',
    npm ? [npm, ...args] : args,
  )
}
if (!built()) run('Building ...', process.execPath, [join(root, 'scripts/build.mjs')])
