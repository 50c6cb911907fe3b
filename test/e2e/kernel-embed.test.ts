import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { packageRoot } from '../../src/base/package-root.ts'

test('the program of docs/embed-the-kernel.md runs as written, with the package as its dependency', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'mem-embed-'))
  try {
    const document = readFileSync(join(packageRoot, 'docs/embed-the-kernel.md'), 'utf8')
    const [, program = ''] = /^```js example\n(.*?)^```$/ms.exec(document) ?? []
    writeFileSync(join(directory, 'main.mjs'), program)
    mkdirSync(join(directory, 'node_modules'))
    symlinkSync(packageRoot, join(directory, 'node_modules/mem'))
    const { stdout } = await promisify(execFile)(process.execPath, ['main.mjs'], { cwd: directory, timeout: 50_000 })
    expect(stdout).toBe('completed { count: 7 }\n')
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})
