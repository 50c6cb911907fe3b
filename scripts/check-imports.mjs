// Proves the floors of the house by reading the sources: who may import whom, and where SQL, the environment, the clock
// and chance may be touched. `node scripts/check-imports.mjs` prints every breach and exits 1 when there is one.
import { readdirSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join, normalize, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

const SERVICES = ['memory', 'kernel', 'runbook', 'gateway', 'git-host']

/** From top to bottom; rooms of one floor do not import each other. A room is a directory or file of src/. */
const FLOORS = [
  ['cli'],
  ['index'],
  ['app'],
  ['console', 'mcp'],
  SERVICES,
  ['platform'],
  ['http'],
  ['config'],
  ['client'],
  ['database'],
  ['base'],
]

const floorOf = (room) => FLOORS.findIndex((rooms) => rooms.includes(room))
const roomOf = (file) => file.split('/')[1]?.replace(/\.ts$/, '') ?? ''

/** What only some rooms may say; `allowed` is asked with the path below the checkout. */
const WORDS = [
  {
    what: 'SQL outside a store/',
    pattern: /(['"`])[^'"`]*?\b(SELECT\s+[\w*("$]|INSERT INTO\s|UPDATE\s+\w+\s+SET\b|DELETE FROM\s)/,
    allowed: (file) => file.includes('/store/') || file.startsWith('src/database/'),
  },
  {
    what: 'process.env outside config/ and cli/',
    pattern: /\bprocess\.env\b/,
    allowed: (file) => file.startsWith('src/config/') || file.startsWith('src/cli/'),
  },
  {
    what: 'a clock or chance outside base/, which a test cannot set',
    pattern: /\bDate\.now\(|\bMath\.random\(|\bnew Date\(\)/,
    allowed: (file) => file.startsWith('src/base/'),
  },
]

/**
 * The breaches in one source file, each as `path:line: text`.
 * @param {string} file path below the checkout, with `/`
 */
export function breaches(file, source) {
  const code = withoutComments(source)
  const found = []
  const report = (index, text) => found.push(`${file}:${code.slice(0, index).split('\n').length}: ${text}`)
  for (const match of code.matchAll(/(?:\bfrom|\bimport\s*\(?)\s*['"](\.[^'"]+)['"]/g)) {
    const target = normalize(join(dirname(file), match[1]))
      .split(sep)
      .join('/')
    const breach = importBreach(file, target)
    if (breach) report(match.index, breach)
  }
  for (const { what, pattern, allowed } of WORDS) {
    if (allowed(file)) continue
    for (const match of code.matchAll(new RegExp(pattern, 'g'))) report(match.index + match[0].length, what)
  }
  return found
}

function importBreach(file, target) {
  if (!target.startsWith('src/')) return `imports ${target}, which lies outside src/`
  const [from, to] = [roomOf(file), roomOf(target)]
  if (from === to) return undefined
  if (floorOf(from) < 0) return `src/${from} is a room without a floor`
  if (floorOf(to) < 0) return `imports ${target}, a room without a floor`
  if (SERVICES.includes(from) && SERVICES.includes(to))
    return `the service ${from} imports the service ${to} (${target})`
  if (from === 'client' && to !== 'base') return `client/ knows only base/ and the wire, not ${target}`
  if (floorOf(to) <= floorOf(from)) return `${from} imports upwards: ${target}`
  return undefined
}

/** Comments become spaces, so that positions stay; strings are kept. */
function withoutComments(source) {
  const token = /(['"])(?:\\.|(?!\1)[^\\\n])*\1|`(?:\\.|[^\\`])*`|\/\*[\s\S]*?\*\/|\/\/[^\n]*/g
  return source.replace(token, (text) => (text.startsWith('/') ? text.replace(/[^\n]/g, ' ') : text))
}

function main() {
  const root = dirname(dirname(fileURLToPath(import.meta.url)))
  const files = readdirSync(join(root, 'src'), { recursive: true })
    .map((name) => `src/${name.split(sep).join('/')}`)
    .filter((file) => file.endsWith('.ts'))
  const found = files.flatMap((file) => breaches(file, readFileSync(join(root, file), 'utf8')))
  for (const breach of found) console.error(breach)
  if (found.length > 0) process.exitCode = 1
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) main()
