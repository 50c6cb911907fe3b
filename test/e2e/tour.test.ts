import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { packageRoot } from '../../src/base/package-root.ts'
import { tourOf } from '../support/documents.ts'
import { startServer } from '../support/server.ts'

const run = promisify(execFile)

test('the tour of the README runs as written', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'mem-tour-'))
  for (const entry of ['bin', 'docs']) symlinkSync(join(packageRoot, entry), join(directory, entry))
  const server = await startServer({ directory })
  try {
    const script = tourOf('README.md').replaceAll('http://127.0.0.1:7777', server.url)
    const env = { PATH: process.env['PATH'], HOME: directory, MEM_ENDPOINT: server.url }
    const { stdout } = await run('bash', ['-euo', 'pipefail', '-c', script], { cwd: directory, env })
    expect(stdout).toContain('The keeper of the lighthouse likes rye bread.')
    expect(stdout).toContain('refused: exit code 5')
    expect(stdout).toMatch(/^-The keeper of the lighthouse likes rye bread\.$/m)
    expect(stdout).toMatch(/^ws_\w+ {2}ok /m)
    expect(stdout).toMatch(/^workflow "invoices" succeeded /m)
    expect(JSON.parse(stdout.slice(stdout.lastIndexOf('{"results"')))).toMatchObject({
      results: [{ text: 'The keeper of the lighthouse likes rye bread.' }],
    })
  } finally {
    await server.stop()
    rmSync(directory, { recursive: true, force: true })
  }
})
