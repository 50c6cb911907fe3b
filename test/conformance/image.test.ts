import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { spawn } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { packageRoot } from '../../src/base/package-root.ts'
import { freePort } from '../support/ports.ts'

/** The Dockerfile's instructions, as [stage, word, rest]; no engine is needed to read them. */
const instructions = readFileSync(join(packageRoot, 'Dockerfile'), 'utf8')
  .split('\n')
  .filter((line) => /^[A-Z]+ /.test(line))
  .reduce<[stage: number, word: string, rest: string][]>((all, line) => {
    const [word = '', ...rest] = line.split(' ')
    const stage = (all.at(-1)?.[0] ?? -1) + (word === 'FROM' ? 1 : 0)
    return [...all, [stage, word, rest.join(' ')]]
  }, [])
const last = instructions.at(-1)?.[0]
const ofImage = (word: string): string[] =>
  instructions.filter(([stage, each]) => stage === last && each === word).map(([, , rest]) => rest)
const copies = ofImage('COPY').map((rest) => rest.replace(/^--from=\S+ \/app\//, '').split(' ')[0] ?? '')

let root: string
let app: string
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'mem-test-image-'))
  app = join(root, 'app')
  mkdirSync(app)
  for (const name of copies) {
    if (name === 'node_modules') symlinkSync(join(packageRoot, name), join(app, name))
    else cpSync(join(packageRoot, name), join(app, name), { recursive: true })
  }
})
afterAll(() => rmSync(root, { recursive: true, force: true }))

/** Runs what the image would, with its environment, in a directory of its own. */
function start(env: Record<string, string>) {
  const data = join(root, 'data')
  mkdirSync(data, { recursive: true })
  const set = Object.fromEntries(ofImage('ENV').flatMap((line) => line.split(' ').map((pair) => pair.split('='))))
  const [program = '', ...args]: string[] = ['ENTRYPOINT', 'CMD'].flatMap((word) =>
    JSON.parse(ofImage(word)[0] ?? '[]'),
  )
  const command = args.map((arg) => arg.replace(/^\/app/, app))
  return spawn(program, command, {
    cwd: data,
    env: {
      PATH: process.env['PATH'],
      HOME: root,
      ...set,
      MEM_DATA_DIR: set['MEM_DATA_DIR'].replace('/data', data),
      ...env,
    },
  })
}

test('memory#132 image: non-root, port 7777, data in /data, default verb serve', () => {
  expect(ofImage('USER').at(-1)).toBe('node')
  expect(ofImage('VOLUME')).toEqual(['/data'])
  expect(ofImage('EXPOSE')).toEqual(['7777'])
  expect(ofImage('CMD')).toEqual(['["serve"]'])
  expect(ofImage('ENV').join(' ')).toContain('MEM_ADDR=:7777 MEM_DATA_DIR=/data')
})

test('the image gets what it copies: it exists, and is not ignored', () => {
  const kept = readFileSync(join(packageRoot, '.dockerignore'), 'utf8')
    .split('\n')
    .map((line) => line.replace('!', ''))
  const fromContext = instructions.filter(([, word, rest]) => word === 'COPY' && !rest.startsWith('--from'))
  const sources = fromContext.flatMap(([, , rest]) => rest.split(' ').slice(0, -1))
  expect(sources.filter((source) => !existsSync(join(packageRoot, source)))).toEqual([])
  expect(sources.filter((source) => !kept.includes(source))).toEqual([])
})

test('memory#132 image: exits at once without a key', async () => {
  const program = start({})
  const [errors] = await Promise.all([text(program.stderr), once(program, 'close')])
  expect(program.exitCode).toBe(78)
  expect(errors).toContain('server.api_key is required')
})

test('memory#132 image: with a key it serves from what was copied, and its data is in the volume', async () => {
  const program = start({ MEM_API_KEY: 'k', MEM_ADDR: `127.0.0.1:${await freePort()}` })
  onTestFinished(() => void program.kill('SIGKILL'))
  const [welcome] = await once(program.stdout, 'data')
  const [url = ''] = /http:\S+\d/.exec(String(welcome)) ?? []
  const headers = { Authorization: 'Bearer k' }
  const made = await fetch(`${url}/v1/workspaces`, { method: 'POST', headers, body: '{"name": "w"}' })
  expect(made.status).toBe(201)
  expect((await fetch(`${url}/ui/login`)).status).toBe(200)
  program.kill('SIGTERM')
  await once(program, 'close')
  expect(program.exitCode).toBe(0)
  expect(existsSync(join(root, 'data/mem.db'))).toBe(true)
})
